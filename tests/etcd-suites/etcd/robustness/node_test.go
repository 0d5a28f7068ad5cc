package robustness

// The scenarios of scenarios.go that need neither gofail nor members that come and go, one a seed.

import (
	"context"
	"math/rand"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"

	"go.etcd.io/etcd/tests/v3/framework/e2e"
	"go.etcd.io/etcd/tests/v3/robustness/client"
	"go.etcd.io/etcd/tests/v3/robustness/failpoint"
	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/etcd/tests/v3/robustness/options"
	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.etcd.io/etcd/tests/v3/robustness/scenarios"
	"go.etcd.io/etcd/tests/v3/robustness/traffic"
)

func TestNode(t *testing.T) {
	testRunner.BeforeTest(t)
	seed, err := strconv.ParseInt(os.Getenv("SEED"), 10, 64)
	require.NoError(t, err)
	count, err := strconv.ParseInt(os.Getenv("COUNT"), 10, 64)
	require.NoError(t, err)
	for ; count > 0; seed, count = seed+1, count-1 {
		t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) { testSeed(t, seed) })
	}
}

type fault struct {
	name  string
	point failpoint.Failpoint
	opts  []e2e.EPClusterOption
}

func faults() []fault {
	proxied := []e2e.EPClusterOption{e2e.WithIsPeerTLS(true), e2e.WithPeerProxy(true)}
	return []fault{
		{"kill, one member", failpoint.KillFailpoint, []e2e.EPClusterOption{e2e.WithClusterSize(1)}},
		{"kill", failpoint.KillFailpoint, nil},
		{"pause", failpoint.Pause, nil},
		{"storm", failpoint.Storm, nil},
		{"kill, one of the last release", failpoint.KillFailpoint, []e2e.EPClusterOption{e2e.WithVersion(e2e.MinorityLastVersion)}},
		{"kill, two of the last release", failpoint.KillFailpoint, []e2e.EPClusterOption{e2e.WithVersion(e2e.QuorumLastVersion)}},
		{"downgrade", failpoint.MemberDowngrade, nil},
		{"downgrade and upgrade", failpoint.MemberDowngradeUpgrade, nil},
		{"blackhole", failpoint.BlackholePeerNetwork, proxied},
		{"freeze until a snapshot", failpoint.FreezeUntilSnapshot, []e2e.EPClusterOption{e2e.WithSnapshotCount(100), e2e.WithSnapshotCatchUpEntries(100)}},
		{"delay", failpoint.DelayPeerNetwork, proxied},
		{"drop", failpoint.DropPeerNetwork, proxied},
	}
}

var loads = []scenarios.TrafficProfile{
	{Name: "puts", Traffic: traffic.EtcdPut, Profile: traffic.HighTrafficProfile},
	{Name: "Kubernetes", Traffic: traffic.Kubernetes, Profile: traffic.HighTrafficProfile},
	{Name: "leases", Traffic: traffic.EtcdPutDeleteLease, Profile: traffic.LowTraffic},
	{Name: "Kubernetes, few", Traffic: traffic.Kubernetes, Profile: traffic.LowTraffic},
	{Name: "deletes", Traffic: traffic.EtcdDelete, Profile: traffic.LowTraffic},
}

// testSeed runs the fault and the load of a seed. Seeds in a row have each fault once before one comes again.
func testSeed(t *testing.T, seed int64) {
	random := rand.New(rand.NewSource(seed))
	all := faults()
	fault, load := all[seed%int64(len(all))], loads[random.Intn(len(loads))]
	ticks := [][2]uint{{29, 271}, {101, 521}, {100, 2000}}[random.Intn(3)]
	opts := append([]e2e.EPClusterOption{
		e2e.WithClusterSize(3), e2e.WithSnapshotCount([]uint64{50, 100, 1000}[random.Intn(3)]),
		options.WithTickMs(ticks[0]), options.WithElectionMs(ticks[1]),
		e2e.WithExperimentalWatchProcessNotifyInterval(100 * time.Millisecond),
	}, fault.opts...)
	lg := zaptest.NewLogger(t)
	scenario := scenarios.TestScenario{
		Name: fault.name, Failpoint: fault.point, Cluster: *e2e.NewConfig(opts...), Traffic: load.Traffic, Profile: load.Profile,
		Watch: client.WatchConfig{RequestProgress: random.Intn(2) == 0},
	}
	t.Logf("seed %d: %s; load %s", seed, fault.name, load.Name)
	scenario.Cluster.Logger = lg
	ctx := context.Background()
	cluster, err := e2e.NewEtcdProcessCluster(ctx, t, e2e.WithConfig(&scenario.Cluster))
	require.NoError(t, err)
	defer forcestopCluster(cluster)
	require.NoError(t, failpoint.Validate(cluster, scenario.Failpoint, scenario.Profile))
	testRobustness(ctx, t, lg, scenario, cluster)
}

// count says how much was checked.
func count(t *testing.T, reports []report.ClientReport, persisted int) {
	operations, unknown, events := 0, 0, 0
	for _, r := range reports {
		for _, op := range r.KeyValue {
			operations++
			if op.Output.(model.MaybeEtcdResponse).Error != "" {
				unknown++
			}
		}
		for _, watch := range r.Watch {
			for _, response := range watch.Responses {
				events += len(response.Events)
			}
		}
	}
	t.Logf("checked: %d operations, %d of them failed or in doubt, %d persisted requests, %d events of watches", operations, unknown, persisted, events)
}
