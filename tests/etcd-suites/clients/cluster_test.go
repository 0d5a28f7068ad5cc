// Package clients works with what etcd's client library offers on top of its calls, while members are killed and frozen.
//
// $NODE names the executable; it needs nothing but etcd's flags. $SECONDS_OF_FAULTS says how long faults go on in each test.
package clients

import (
	"context"
	"fmt"
	"math/rand"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	size       = 3
	readyLimit = 30 * time.Second
	callLimit  = 8 * time.Second
	// Longer than any fault and the election after it.
	leaseSeconds = 15
)

type member struct {
	url  string
	args []string
	log  string
	cmd  *exec.Cmd
	gone chan struct{}
}

type cluster struct {
	t       *testing.T
	members []*member
	// calm is closed when the faults are over and all members serve again.
	calm chan struct{}
	// faulty ends before that.
	faulty context.Context
}

// start begins a cluster and, at once, its faults.
func start(t *testing.T) *cluster {
	home := t.TempDir()
	var peers []string
	for i := range size {
		peers = append(peers, fmt.Sprintf("m%d=http://127.0.0.1:%d", i, 33001+10*i))
	}
	c := &cluster{t: t, calm: make(chan struct{})}
	for i := range size {
		client, peer := fmt.Sprintf("http://127.0.0.1:%d", 33000+10*i), fmt.Sprintf("http://127.0.0.1:%d", 33001+10*i)
		m := &member{url: client, log: filepath.Join(home, fmt.Sprintf("m%d.log", i)), args: []string{
			fmt.Sprintf("--name=m%d", i), "--data-dir=" + filepath.Join(home, fmt.Sprintf("m%d", i)),
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=" + strings.Join(peers, ","), "--snapshot-count=1000",
		}}
		m.start(t)
		c.members = append(c.members, m)
	}
	for _, m := range c.members {
		m.awaitHealth(t)
	}
	seconds, err := strconv.Atoi(os.Getenv("SECONDS_OF_FAULTS"))
	if err != nil {
		seconds = 20
	}
	var end context.CancelFunc
	c.faulty, end = context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	go c.disturb()
	t.Cleanup(func() {
		end()
		<-c.calm
		for _, m := range c.members {
			m.kill()
		}
	})
	return c
}

func (m *member) start(t *testing.T) {
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Error(err)
		return
	}
	defer log.Close()
	m.cmd = exec.Command(os.Getenv("NODE"), m.args...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	if err := m.cmd.Start(); err != nil {
		t.Error(err)
	}
	m.gone = make(chan struct{})
	go func(cmd *exec.Cmd, gone chan struct{}) { cmd.Wait(); close(gone) }(m.cmd, m.gone)
}

func (m *member) kill() {
	m.cmd.Process.Kill()
	<-m.gone
}

func (m *member) awaitHealth(t *testing.T) {
	asks := http.Client{Timeout: time.Second}
	for began := time.Now(); time.Since(began) < readyLimit; time.Sleep(10 * time.Millisecond) {
		answer, err := asks.Get(m.url + "/health")
		if err != nil {
			continue
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return
		}
	}
	said, _ := os.ReadFile(m.log)
	t.Errorf("%s is not healthy after %s: %s", m.url, readyLimit, said)
}

// disturb kills or freezes one member at a time.
func (c *cluster) disturb() {
	defer close(c.calm)
	kills, freezes := 0, 0
	for c.faulty.Err() == nil {
		m := c.members[rand.Intn(size)]
		if rand.Intn(3) > 0 {
			m.kill()
			time.Sleep(upTo(800 * time.Millisecond))
			m.start(c.t)
			kills++
		} else {
			m.cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(upTo(2500 * time.Millisecond))
			m.cmd.Process.Signal(syscall.SIGCONT)
			freezes++
		}
		m.awaitHealth(c.t)
		time.Sleep(upTo(1200 * time.Millisecond))
	}
	for _, m := range c.members {
		m.awaitHealth(c.t)
	}
	c.t.Logf("%d kills, %d freezes", kills, freezes)
}

// client is a new one that knows all members.
func (c *cluster) client() *clientv3.Client {
	var urls []string
	for _, i := range rand.Perm(size) {
		urls = append(urls, c.members[i].url)
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: urls, Logger: zap.NewNop(), DialTimeout: 5 * time.Second,
		DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { client.Close() })
	return client
}

// once makes one call; its fate may be unknown when it fails.
func once(call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	return call(ctx)
}

// until makes a call that may be repeated until it is answered.
func until(call func(context.Context) error) {
	for once(call) != nil {
		time.Sleep(20 * time.Millisecond)
	}
}

// values are what stands below a prefix.
func values(kv clientv3.KV, prefix string) map[string]string {
	found := map[string]string{}
	until(func(ctx context.Context) error {
		answer, err := kv.Get(ctx, prefix, clientv3.WithPrefix())
		if err == nil {
			for _, pair := range answer.Kvs {
				found[string(pair.Key)] = string(pair.Value)
			}
		}
		return err
	})
	return found
}

func upTo(limit time.Duration) time.Duration {
	return time.Duration(rand.Int63n(int64(limit)))
}
