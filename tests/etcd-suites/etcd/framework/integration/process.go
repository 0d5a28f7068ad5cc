package integration

// A member as a process of the executable that $NODE names, instead of a server inside the test.

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

const (
	// Longer than the tests' own tick of 10 ms: processes share processors with the tests.
	heartbeatInterval = 25 * time.Millisecond
	electionTimeout   = 10 * heartbeatInterval
	startLimit        = 20 * time.Second
)

type process struct {
	flags      []string
	bridgePort string
	cmd        *exec.Cmd
	id         types.ID
	asks       *clientv3.Client
	// ready and ended are closed when the process serves and when it is gone.
	ready, ended chan struct{}
}

// flagsOf says what a test asks for in etcd's flags, which must be done before the server's options are made of it.
func flagsOf(m *Member, asked MemberConfig) []string {
	var flags []string
	add := func(name string, value any, wanted bool) {
		if wanted {
			flags = append(flags, fmt.Sprintf("--%s=%v", name, value))
		}
	}
	add("backend-batch-interval", asked.BackendBatchInterval, asked.BackendBatchInterval != 0)
	add("max-txn-ops", m.MaxTxnOps, m.MaxTxnOps != embed.DefaultMaxTxnOps)
	add("max-request-bytes", m.MaxRequestBytes, m.MaxRequestBytes != embed.DefaultMaxRequestBytes)
	add("snapshot-count", asked.SnapshotCount, asked.SnapshotCount != 0)
	add("snapshot-catchup-entries", asked.SnapshotCatchUpEntries, asked.SnapshotCatchUpEntries != 0)
	add("grpc-keepalive-min-time", asked.GRPCKeepAliveMinTime, asked.GRPCKeepAliveMinTime != 0)
	add("grpc-keepalive-interval", asked.GRPCKeepAliveInterval, asked.GRPCKeepAliveInterval != 0)
	add("grpc-keepalive-timeout", asked.GRPCKeepAliveTimeout, asked.GRPCKeepAliveTimeout != 0)
	add("feature-gates", "LeaseCheckpoint=true,LeaseCheckpointPersist="+fmt.Sprint(asked.LeaseCheckpointPersist), asked.EnableLeaseCheckpoint)
	add("watch-progress-notify-interval", asked.WatchProgressNotifyInterval, asked.WatchProgressNotifyInterval != 0)
	add("max-learners", asked.MaxLearners, asked.MaxLearners != 0)
	add("strict-reconfig-check", false, asked.DisableStrictReconfigCheck)
	add("corrupt-check-time", asked.CorruptCheckTime, asked.CorruptCheckTime != 0)
	add("metrics", asked.Metrics, asked.Metrics != "")
	add("auth-token", asked.AuthToken, asked.AuthToken != "")
	flags = append(flags, tlsFlags("", m.ClientTLSInfo)...)
	return append(flags, tlsFlags("peer-", m.PeerTLSInfo)...)
}

func tlsFlags(prefix string, tls *transport.TLSInfo) (flags []string) {
	if tls == nil {
		return nil
	}
	for name, file := range map[string]string{"cert-file": tls.CertFile, "key-file": tls.KeyFile, "trusted-ca-file": tls.TrustedCAFile} {
		if file != "" {
			flags = append(flags, "--"+prefix+name+"="+file)
		}
	}
	if tls.ClientCertAuth {
		flags = append(flags, "--"+prefix+"client-cert-auth")
	}
	if prefix != "" && tls.ClientCertFile != "" {
		flags = append(flags, "--peer-client-cert-file="+tls.ClientCertFile, "--peer-client-key-file="+tls.ClientKeyFile)
	}
	return flags
}

// listen chooses where the process will: where the member's listeners were, which end here.
func (m *Member) listen() error {
	_, m.Port, _ = net.SplitHostPort(m.ClientListeners[0].Addr().String())
	for _, listener := range append(m.PeerListeners, m.ClientListeners...) {
		listener.Close()
	}
	_, host, port := m.grpcAddr()
	m.GRPCURL = m.clientScheme() + "://" + net.JoinHostPort(host, port)
	if m.UseBridge {
		_, err := m.addBridge()
		return err
	}
	return nil
}

// bridged is the bridge's address by the name that certificates have.
func (m *Member) bridged(listener net.Listener) string {
	_, host, _ := m.grpcAddr()
	_, m.process.bridgePort, _ = net.SplitHostPort(listener.Addr().String())
	return net.JoinHostPort(host, m.process.bridgePort)
}

func (m *Member) startProcess() error {
	client, peer := m.ClientURLs[0].String(), m.PeerURLs[0].String()
	state := "new"
	if !m.NewCluster {
		state = "existing"
	}
	args := append([]string{
		"--name=" + m.Name, "--data-dir=" + m.DataDir,
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + m.InitialPeerURLsMap.String(), "--initial-cluster-token=" + m.InitialClusterToken,
		"--initial-cluster-state=" + state,
		fmt.Sprintf("--heartbeat-interval=%d", heartbeatInterval.Milliseconds()),
		fmt.Sprintf("--election-timeout=%d", electionTimeout.Milliseconds()),
	}, m.process.flags...)
	if m.QuotaBackendBytes != 0 {
		// Tests set it between two starts.
		args = append(args, fmt.Sprintf("--quota-backend-bytes=%d", m.QuotaBackendBytes))
	}
	log, err := os.OpenFile(m.DataDir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(os.Getenv("NODE"), args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	m.process.cmd, m.process.ended, m.process.ready = cmd, ended, make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	m.Closed = false
	if err := m.awaitListener(m.ClientURLs[0].Host); err != nil {
		m.endProcess()
		return err
	}
	if m.process.asks == nil {
		if m.process.asks, err = m.direct(client); err != nil {
			return err
		}
	}
	if m.Client == nil {
		if m.Client, err = NewClientV3(m); err != nil {
			return err
		}
	}
	for began := time.Now(); m.process.id == 0; time.Sleep(heartbeatInterval) {
		if status := m.status(); status != nil {
			m.process.id = types.ID(status.Header.MemberId)
		} else if time.Since(began) > startLimit {
			return fmt.Errorf("%s does not answer for its status: %s", m.Name, m.said())
		}
	}
	close(m.process.ready)
	return nil
}

// relaunch starts a member that was stopped.
func (m *Member) relaunch() error {
	if m.UseBridge {
		if _, err := m.addBridge(); err != nil {
			return err
		}
	}
	return m.startProcess()
}

// direct is a client that a test's bridge does not disturb.
func (m *Member) direct(url string) (*clientv3.Client, error) {
	config := clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop(), DialTimeout: startLimit}
	if m.ClientTLSInfo != nil {
		tls, err := m.ClientTLSInfo.ClientConfig()
		if err != nil {
			return nil, err
		}
		config.TLS = tls
	}
	return clientv3.New(config)
}

func (m *Member) awaitListener(address string) error {
	for began := time.Now(); time.Since(began) < startLimit; time.Sleep(5 * time.Millisecond) {
		select {
		case <-m.process.ended:
			return fmt.Errorf("%s ended at once: %s", m.Name, m.said())
		default:
		}
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return nil
		}
	}
	return fmt.Errorf("%s does not listen: %s", m.Name, m.said())
}

func (m *Member) said() string {
	said, _ := os.ReadFile(m.DataDir + ".log")
	return string(said)
}

func (m *Member) status() *clientv3.StatusResponse {
	if m.process.asks == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*electionTimeout)
	defer cancel()
	status, err := m.process.asks.Status(ctx, m.ClientURLs[0].String())
	if err != nil {
		return nil
	}
	return status
}

// Lead is the leader that the member knows, 0 for none.
func (m *Member) Lead() uint64 {
	time.Sleep(time.Millisecond)
	if status := m.status(); status != nil {
		return status.Leader
	}
	return 0
}

func (m *Member) hasClusterVersion() bool {
	client := http.DefaultClient
	if m.ClientTLSInfo != nil {
		tls, err := m.ClientTLSInfo.ClientConfig()
		if err != nil {
			return false
		}
		client = &http.Client{Transport: &http.Transport{TLSClientConfig: tls, DisableKeepAlives: true}}
	}
	answer, err := client.Get(m.ClientURLs[0].String() + "/version")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode == http.StatusOK && !strings.Contains(string(body), "not_decided")
}

func (m *Member) signal(signal os.Signal) {
	m.process.cmd.Process.Signal(signal)
}

func (m *Member) endProcess() {
	if m.process.asks != nil {
		m.process.asks.Close()
		m.process.asks = nil
	}
	if m.process.cmd == nil {
		return
	}
	m.signal(syscall.SIGCONT)
	m.signal(syscall.SIGTERM)
	select {
	case <-m.process.ended:
	case <-time.After(startLimit):
		m.Logger.Error("SIGTERM did not end the member", zap.String("name", m.Name))
		m.process.cmd.Process.Kill()
		<-m.process.ended
	}
	m.Logger.Info("what the member said", zap.String("name", m.Name), zap.String("log", m.said()))
}
