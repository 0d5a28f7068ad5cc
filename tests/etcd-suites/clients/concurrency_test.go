package clients

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

var errNotOwner = errors.New("the lock is another's")

// end frees what a session held, whatever became of it.
func end(client *clientv3.Client, session *concurrency.Session) {
	session.Orphan()
	once(func(ctx context.Context) error { _, err := client.Revoke(ctx, session.Lease()); return err })
}

// Whoever has the lock adds one to a number, under a fence: none of it is lost or done twice.
func TestMutex(t *testing.T) {
	c := start(t)
	var known, unknown atomic.Int64
	var workers sync.WaitGroup
	for range 6 {
		workers.Go(func() {
			client := c.client()
			for c.faulty.Err() == nil {
				session, err := concurrency.NewSession(client, concurrency.WithTTL(leaseSeconds))
				if err != nil {
					continue
				}
				for c.faulty.Err() == nil {
					switch err := addOne(client, session); {
					case err == nil:
						known.Add(1)
						continue
					case !errors.Is(err, errNotOwner):
						unknown.Add(1)
					}
					break
				}
				end(client, session)
			}
		})
	}
	workers.Wait()
	sum, _ := strconv.ParseInt(values(c.client(), "number")["number"], 10, 64)
	t.Logf("%d additions known, %d in doubt, sum %d", known.Load(), unknown.Load(), sum)
	if known.Load() == 0 || sum < known.Load() || sum > known.Load()+unknown.Load() {
		t.Error("the sum is not what was added")
	}
}

// addOne fails with errNotOwner where nothing can have been added.
func addOne(client *clientv3.Client, session *concurrency.Session) error {
	mutex := concurrency.NewMutex(session, "lock")
	if once(mutex.Lock) != nil {
		return errNotOwner
	}
	number, _ := strconv.Atoi(values(client, "number")["number"])
	err := once(func(ctx context.Context) error {
		answer, err := client.Txn(ctx).If(mutex.IsOwner()).Then(clientv3.OpPut("number", strconv.Itoa(number+1))).Commit()
		if err == nil && !answer.Succeeded {
			err = errNotOwner
		}
		return err
	})
	if once(mutex.Unlock) != nil && err == nil {
		// It counts; the session is of no use any more.
		end(client, session)
	}
	return err
}

// Candidates campaign and resign; whoever observes sees terms that only go up.
func TestElection(t *testing.T) {
	c := start(t)
	observing, cancel := context.WithCancel(context.Background())
	var terms, seen, backwards atomic.Int64
	var workers, observer sync.WaitGroup
	observer.Go(func() {
		session, err := concurrency.NewSession(c.client(), concurrency.WithTTL(leaseSeconds))
		if err != nil {
			t.Error(err)
			return
		}
		last := int64(0)
		for observing.Err() == nil {
			for answer := range concurrency.NewElection(session, "election").Observe(observing) {
				seen.Add(1)
				if answer.Kvs[0].CreateRevision < last {
					backwards.Add(1)
				}
				last = answer.Kvs[0].CreateRevision
			}
		}
	})
	for i := range 4 {
		workers.Go(func() {
			client := c.client()
			for c.faulty.Err() == nil {
				session, err := concurrency.NewSession(client, concurrency.WithTTL(leaseSeconds))
				if err != nil {
					continue
				}
				election := concurrency.NewElection(session, "election")
				if once(func(ctx context.Context) error { return election.Campaign(ctx, strconv.Itoa(i)) }) == nil {
					terms.Add(1)
					once(election.Resign)
				}
				end(client, session)
			}
		})
	}
	workers.Wait()
	cancel()
	observer.Wait()
	t.Logf("%d terms, %d seen, %d went back", terms.Load(), seen.Load(), backwards.Load())
	if terms.Load() == 0 || seen.Load() == 0 || backwards.Load() > 0 {
		t.Error("terms are not in order")
	}
}

// Money goes from account to account: at no moment is the sum another.
func TestSTM(t *testing.T) {
	const accounts, each = 6, 100
	c := start(t)
	client := c.client()
	account := func(i int) string { return fmt.Sprintf("account/%d", i) }
	for i := range accounts {
		until(func(ctx context.Context) error { _, err := client.Put(ctx, account(i), strconv.Itoa(each)); return err })
	}
	var done, failed atomic.Int64
	var workers sync.WaitGroup
	for worker := range 6 {
		level := []concurrency.Isolation{concurrency.SerializableSnapshot, concurrency.Serializable}[worker%2]
		workers.Go(func() {
			client := c.client()
			for c.faulty.Err() == nil {
				pair := rand.Perm(accounts)
				transfer := func(stm concurrency.STM) error {
					from, _ := strconv.Atoi(stm.Get(account(pair[0])))
					to, _ := strconv.Atoi(stm.Get(account(pair[1])))
					amount := rand.Intn(from + 1)
					stm.Put(account(pair[0]), strconv.Itoa(from-amount))
					stm.Put(account(pair[1]), strconv.Itoa(to+amount))
					return nil
				}
				if once(func(ctx context.Context) error {
					_, err := concurrency.NewSTM(client, transfer, concurrency.WithIsolation(level), concurrency.WithAbortContext(ctx))
					return err
				}) == nil {
					done.Add(1)
				} else {
					failed.Add(1)
				}
			}
		})
	}
	for c.faulty.Err() == nil {
		sum := 0
		for _, value := range values(client, "account/") {
			amount, _ := strconv.Atoi(value)
			sum += amount
		}
		if sum != accounts*each {
			t.Errorf("the sum is %d", sum)
		}
	}
	workers.Wait()
	t.Logf("%d transfers, %d failed or in doubt", done.Load(), failed.Load())
	if done.Load() == 0 {
		t.Error("nothing was transferred")
	}
}

// Leases that are kept alive stay, with their keys, and end when nobody keeps them.
func TestKeepAlive(t *testing.T) {
	const leases, ttl = 10, 8
	c := start(t)
	client := c.client()
	keeping, stop := context.WithCancel(context.Background())
	defer stop()
	var ended atomic.Int64
	for i := range leases {
		var lease clientv3.LeaseID
		until(func(ctx context.Context) error {
			answer, err := client.Grant(ctx, ttl)
			if err == nil {
				lease = answer.ID
			}
			return err
		})
		until(func(ctx context.Context) error {
			_, err := client.Put(ctx, fmt.Sprintf("kept/%d", i), "", clientv3.WithLease(lease))
			return err
		})
		kept, err := client.KeepAlive(keeping, lease)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range kept {
			}
			if keeping.Err() == nil {
				ended.Add(1)
			}
		}()
	}
	<-c.calm
	if left := len(values(client, "kept/")); left != leases || ended.Load() > 0 {
		t.Errorf("%d of %d keys are left while they are kept, %d leases ended", left, leases, ended.Load())
	}
	stop()
	for began := time.Now(); len(values(client, "kept/")) > 0; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > 3*ttl*time.Second {
			t.Fatal("leases that nobody keeps do not end")
		}
	}
}
