//! A connection that has its turn last: it is polled once nothing else is ready to run.
//!
//! Answers that are ready at the same time then leave in one write. Whoever is woken by a task runs right after it, in Tokio: each
//! answer would be a write of its own, and writing is what most of an answer costs.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::task::AtomicWaker;
use hyper::rt::Executor;
use tokio::task::yield_now;

/// Whether there is something to do, and whom to tell.
#[derive(Default)]
struct Woken {
    is: AtomicBool,
    waiting: AtomicWaker,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is.store(true, Ordering::Release);
        self.waiting.wake();
    }
}

impl Woken {
    async fn wait(&self) {
        poll_fn(|context| {
            self.waiting.register(context.waker());
            match self.is.swap(false, Ordering::AcqRel) {
                true => {
                    // What wakes it while it waits for its turn is seen then.
                    drop(self.waiting.take());
                    Poll::Ready(())
                }
                false => Poll::Pending,
            }
        })
        .await;
    }
}

/// Runs what drives connections that are opened here; and with them tonic's queue of requests, and what each stream to another
/// member sends (hyper's pipes of bodies). So heartbeats have their turn last, too.
#[derive(Clone, Copy, Debug)]
pub struct Gathering;

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Gathering {
    fn execute(&self, connection: F) {
        tokio::spawn(gathering(connection));
    }
}

/// Runs this to its end.
pub async fn gathering<F: Future>(connection: F) -> F::Output {
    let mut connection = pin!(connection);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    loop {
        // What woke it until now is seen in this turn.
        woken.is.swap(false, Ordering::AcqRel);
        if let Poll::Ready(output) = connection.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        woken.wait().await;
        yield_now().await;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[tokio::test]
    async fn what_wakes_a_connection_while_it_waits_for_its_turn_is_seen_once() {
        let (send, mut turns) = unbounded_channel();
        // It tells of each turn, with what wakes it.
        let connection = poll_fn(move |context| {
            send.send(context.waker().clone()).unwrap();
            Poll::<()>::Pending
        });
        tokio::spawn(gathering(connection));
        let waker = turns.recv().await.unwrap();
        waker.wake_by_ref();
        // The connection runs before this, and waits for its turn.
        tokio::spawn(async move { waker.wake() });
        turns.recv().await.unwrap();
        for _ in 0..50 {
            yield_now().await;
        }
        assert!(turns.try_recv().is_err(), "it had a turn for nothing");
    }
}
