package testserver

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

const startLimit = 30 * time.Second

// runNode is RunEtcd with a process of the executable that $NODE names.
func runNode(t testing.TB, cfg *embed.Config) *kubernetes.Client {
	t.Helper()
	secure, err := cfg.ClientTLSInfo.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client := cfg.ListenClientUrls[0].String()
	startNode(t, cfg, client, secure)
	opened, err := kubernetes.New(clientv3.Config{
		TLS: secure, Endpoints: []string{client}, DialTimeout: 10 * time.Second,
		Logger: zaptest.NewLogger(t, zaptest.Level(zapcore.ErrorLevel)).Named("client"),
	})
	if err != nil {
		t.Fatal(err)
	}
	recorder := storagetesting.NewKubernetesRecorder(opened.Kubernetes)
	opened.KV = storagetesting.NewKVRecorder(opened.KV, recorder)
	opened.Kubernetes = recorder
	return opened
}

// startNode says in flags what tests set in the configuration, and returns when the process serves.
func startNode(t testing.TB, cfg *embed.Config, client string, secure *tls.Config) {
	peer := cfg.ListenPeerUrls[0].String()
	args := []string{
		"--name=" + cfg.Name, "--data-dir=" + cfg.Dir, "--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=" + cfg.InitialCluster,
		fmt.Sprintf("--max-request-bytes=%d", cfg.MaxRequestBytes), fmt.Sprintf("--max-txn-ops=%d", cfg.MaxTxnOps),
		fmt.Sprintf("--quota-backend-bytes=%d", cfg.QuotaBackendBytes),
	}
	if interval := cfg.WatchProgressNotifyInterval; interval != 0 {
		args = append(args, "--watch-progress-notify-interval="+interval.String())
	}
	if info := cfg.ClientTLSInfo; !info.Empty() {
		args = append(args, "--cert-file="+info.CertFile, "--key-file="+info.KeyFile, "--trusted-ca-file="+info.TrustedCAFile)
		if info.ClientCertAuth {
			args = append(args, "--client-cert-auth")
		}
	}
	log, err := os.Create(cfg.Dir + ".log")
	if err != nil {
		t.Fatal(err)
	}
	node := exec.Command(os.Getenv("NODE"), args...)
	node.Stdout, node.Stderr = log, log
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		node.Process.Kill()
		node.Wait()
		log.Close()
	})
	asks := http.Client{Timeout: time.Second, Transport: &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true}}
	for began := time.Now(); time.Since(began) < startLimit; time.Sleep(10 * time.Millisecond) {
		answer, err := asks.Get(client + "/health")
		if err != nil {
			continue
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return
		}
	}
	said, _ := os.ReadFile(cfg.Dir + ".log")
	t.Fatalf("the node does not serve: %s", said)
}
