package clients

import (
	"context"
	"fmt"
	"maps"
	"math/rand"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/leasing"
	"go.etcd.io/etcd/client/v3/mirror"
	"go.etcd.io/etcd/client/v3/namespace"
	"go.etcd.io/etcd/client/v3/naming/endpoints"
	"go.etcd.io/etcd/client/v3/ordering"
)

// A mirror that was told of every change is equal to what it mirrors.
func TestMirror(t *testing.T) {
	c := start(t)
	client := c.client()
	put := func(key, value string) error {
		return once(func(ctx context.Context) error { _, err := client.Put(ctx, key, value); return err })
	}
	for i := range 200 {
		for put(fmt.Sprintf("mirror/%d", i), "first") != nil {
		}
	}
	copied := map[string]string{}
	syncer := mirror.NewSyncer(client, "mirror/", 0)
	pages, failures := syncer.SyncBase(context.Background())
	for page := range pages {
		for _, pair := range page.Kvs {
			copied[string(pair.Key)] = string(pair.Value)
		}
	}
	if err := <-failures; err != nil {
		t.Fatal(err)
	}
	updating, cancel := context.WithCancel(context.Background())
	defer cancel()
	whole := make(chan error, 1)
	go func() {
		last := int64(0)
		for answer := range syncer.SyncUpdates(updating) {
			for _, event := range answer.Events {
				if event.Kv.ModRevision < last {
					whole <- fmt.Errorf("revision %d comes after %d", event.Kv.ModRevision, last)
					return
				}
				last = event.Kv.ModRevision
				if event.Type == clientv3.EventTypeDelete {
					delete(copied, string(event.Kv.Key))
				} else {
					copied[string(event.Kv.Key)] = string(event.Kv.Value)
				}
				if string(event.Kv.Key) == "mirror/end" {
					whole <- nil
					return
				}
			}
			if answer.Err() != nil {
				whole <- answer.Err()
				return
			}
		}
		whole <- fmt.Errorf("the watch ended")
	}()
	changes := 0
	for ; c.faulty.Err() == nil; changes++ {
		key := fmt.Sprintf("mirror/%d", rand.Intn(300))
		if rand.Intn(5) > 0 {
			put(key, strconv.Itoa(changes))
		} else {
			once(func(ctx context.Context) error { _, err := client.Delete(ctx, key); return err })
		}
	}
	<-c.calm
	for put("mirror/end", "") != nil {
	}
	select {
	case err := <-whole:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(readyLimit):
		t.Fatal("the mirror is not told of the last change")
	}
	t.Logf("%d changes, %d keys at the end", changes, len(copied))
	if !maps.Equal(copied, values(client, "mirror/")) {
		t.Error("the mirror differs")
	}
}

// Of two clients that keep what they read by a lease on it, neither reads what the other has overwritten.
func TestLeasing(t *testing.T) {
	c := start(t)
	var kvs []clientv3.KV
	for range 2 {
		kv, closes, err := leasing.NewKV(c.client(), "leasing/")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(closes)
		kvs = append(kvs, kv)
	}
	possible := map[string]map[string]bool{}
	reads, stale := 0, 0
	for n := 0; c.faulty.Err() == nil; n++ {
		key, value := fmt.Sprintf("key/%d", rand.Intn(5)), strconv.Itoa(n)
		if once(func(ctx context.Context) error { _, err := kvs[n%2].Put(ctx, key, value); return err }) == nil {
			possible[key] = map[string]bool{value: true}
		} else if possible[key] != nil {
			possible[key][value] = true
		} else {
			possible[key] = map[string]bool{"": true, value: true}
		}
		var read string
		if once(func(ctx context.Context) error {
			answer, err := kvs[(n+1)%2].Get(ctx, key)
			if err == nil && len(answer.Kvs) > 0 {
				read = string(answer.Kvs[0].Value)
			}
			return err
		}) == nil {
			reads++
			if !possible[key][read] {
				stale++
			}
		}
	}
	t.Logf("%d reads, %d stale", reads, stale)
	if reads == 0 || stale > 0 {
		t.Error("a lease does not keep others from writing")
	}
}

// Reads of whatever member never go back behind one that was seen.
func TestOrdering(t *testing.T) {
	c := start(t)
	client, writer := c.client(), c.client()
	kv := ordering.NewKV(client.KV, ordering.NewOrderViolationSwitchEndpointClosure(client))
	reads, failed, last := 0, 0, int64(0)
	for n := 0; c.faulty.Err() == nil; n++ {
		once(func(ctx context.Context) error { _, err := writer.Put(ctx, "ordered", strconv.Itoa(n)); return err })
		if once(func(ctx context.Context) error {
			answer, err := kv.Get(ctx, "ordered", clientv3.WithSerializable())
			if err != nil {
				return err
			}
			if answer.Header.Revision < last {
				t.Errorf("revision %d was read after %d", answer.Header.Revision, last)
			}
			last = answer.Header.Revision
			return nil
		}) == nil {
			reads++
		} else {
			failed++
		}
	}
	t.Logf("%d reads, %d failed", reads, failed)
	if reads == 0 {
		t.Error("nothing was read")
	}
}

// Services that register in a namespace are those that a resolver knows.
func TestNaming(t *testing.T) {
	c := start(t)
	client := c.client()
	client.KV, client.Watcher = namespace.NewKV(client.KV, "space/"), namespace.NewWatcher(client.Watcher, "space/")
	manager, err := endpoints.NewManager(client, "service")
	if err != nil {
		t.Fatal(err)
	}
	updates, err := manager.NewWatchChannel(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var lock sync.Mutex
	known := map[string]bool{}
	go func() {
		for some := range updates {
			lock.Lock()
			for _, update := range some {
				if update.Op == endpoints.Add {
					known[update.Key] = true
				} else {
					delete(known, update.Key)
				}
			}
			lock.Unlock()
		}
	}()
	there := map[string]bool{}
	changes := 0
	for ; c.faulty.Err() == nil; changes++ {
		key := fmt.Sprintf("service/%d", rand.Intn(5))
		if rand.Intn(2) == 0 {
			until(func(ctx context.Context) error { return manager.AddEndpoint(ctx, key, endpoints.Endpoint{Addr: key}) })
			there[key] = true
		} else {
			until(func(ctx context.Context) error { return manager.DeleteEndpoint(ctx, key) })
			delete(there, key)
		}
		time.Sleep(20 * time.Millisecond)
	}
	<-c.calm
	listed, err := manager.List(context.Background())
	if err != nil || len(listed) != len(there) {
		t.Errorf("%v are listed where %v were registered: %v", listed, there, err)
	}
	same := func() bool { lock.Lock(); defer lock.Unlock(); return maps.Equal(known, there) }
	for began := time.Now(); !same(); time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > readyLimit {
			t.Fatalf("%v are known where %v were registered", known, there)
		}
	}
	if stored := values(c.client(), "space/service/"); len(stored) != len(there) {
		t.Errorf("%v are stored in the namespace", stored)
	}
	t.Logf("%d changes", changes)
}
