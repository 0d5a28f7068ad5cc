package failpoint

// Faults that need nothing inside a member: SIGSTOP, and SIGKILL and SIGSTOP in turn for as long as a while.

import (
	"context"
	"math/rand"
	"testing"
	"time"

	"go.uber.org/zap"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/tests/v3/framework/e2e"
	"go.etcd.io/etcd/tests/v3/robustness/identity"
	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.etcd.io/etcd/tests/v3/robustness/traffic"
)

var (
	Pause Failpoint = storm{name: "pause", rounds: 1}
	Storm Failpoint = storm{name: "storm", rounds: 8, kills: true}
)

type storm struct {
	name   string
	rounds int
	kills  bool
}

func (f storm) Name() string { return f.name }

func (f storm) Timeout() time.Duration { return 2 * time.Minute }

func (f storm) Available(e2e.EtcdProcessClusterConfig, e2e.EtcdProcess, traffic.Profile) bool {
	return true
}

func (f storm) Inject(ctx context.Context, t *testing.T, lg *zap.Logger, clus *e2e.EtcdProcessCluster, _ time.Time, _ identity.Provider) ([]report.ClientReport, error) {
	for range f.rounds {
		member := clus.Procs[rand.Intn(len(clus.Procs))]
		if rand.Intn(2) == 0 {
			member = clus.Procs[clus.WaitLeader(t)]
		}
		act := pause
		if f.kills && rand.Intn(2) == 0 {
			act = kill
		}
		if err := act(ctx, member); err != nil {
			return nil, err
		}
		time.Sleep(upTo(1500 * time.Millisecond))
	}
	return nil, nil
}

// FreezeUntilSnapshot is BlackholeUntilSnapshot by SIGSTOP: a member of the node that only nobody can call does not fall behind.
var FreezeUntilSnapshot Failpoint = freeze{}

type freeze struct{}

func (freeze) Name() string { return "freeze until a snapshot" }

func (freeze) Available(config e2e.EtcdProcessClusterConfig, _ e2e.EtcdProcess, _ traffic.Profile) bool {
	return config.ClusterSize > 1
}

func (freeze) Inject(ctx context.Context, t *testing.T, _ *zap.Logger, clus *e2e.EtcdProcessCluster, _ time.Time, _ identity.Provider) ([]report.ClientReport, error) {
	leader := clus.WaitLeader(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: clus.Procs[leader].EndpointsGRPC(), Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	began, err := latestRevisionForEndpoint(ctx, client)
	if err != nil {
		return nil, err
	}
	member := clus.Procs[(leader+1)%len(clus.Procs)]
	if err := member.Pause(); err != nil {
		return nil, err
	}
	defer member.Resume()
	for ctx.Err() == nil {
		revision, err := latestRevisionForEndpoint(ctx, client)
		if err != nil {
			return nil, err
		}
		if revision > began+int64(entriesToGuaranteeSnapshot(*clus.Cfg)) {
			return nil, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil, ctx.Err()
}

func pause(_ context.Context, member e2e.EtcdProcess) error {
	if err := member.Pause(); err != nil {
		return err
	}
	time.Sleep(200*time.Millisecond + upTo(2800*time.Millisecond))
	return member.Resume()
}

func kill(ctx context.Context, member e2e.EtcdProcess) error {
	if err := member.Kill(); err != nil {
		return err
	}
	if err := member.Wait(ctx); err != nil {
		return err
	}
	time.Sleep(upTo(time.Second))
	return member.Start(ctx)
}

func upTo(limit time.Duration) time.Duration {
	return time.Duration(rand.Int63n(int64(limit)))
}
