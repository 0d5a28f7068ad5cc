//! Connections on which nothing was asked yet. They take places, and whoever wants no answer can hold as many as there are: so the
//! oldest of many is given up. Whoever means it asks at once.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use ::http::Request;
use hyper::service::Service;
use tokio::task::AbortHandle;

/// Those of a port, oldest first.
#[derive(Debug)]
pub(super) struct Silent {
    most: usize,
    waiting: VecDeque<(Asked, AbortHandle)>,
}

impl Silent {
    /// As many at once.
    pub(super) fn at_most(most: usize) -> Self {
        Self { most, waiting: VecDeque::new() }
    }

    /// One more; whether another was given up for it.
    pub(super) fn add(&mut self, asked: Asked, connection: AbortHandle) -> bool {
        self.waiting.retain(|(asked, connection)| !asked.yet() && !connection.is_finished());
        self.waiting.push_back((asked, connection));
        let is_one_too_many = self.waiting.len() > self.most;
        if is_one_too_many && let Some((_, oldest)) = self.waiting.pop_front() {
            oldest.abort();
        }
        is_one_too_many
    }
}

/// Whether anything was asked on a connection that deserves an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked(Arc<AtomicBool>);

impl Asked {
    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn yet(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Notes the first request; where the service has to know the caller, it is given what it may note it with.
#[derive(Clone)]
pub(super) struct Noting<S> {
    pub(super) service: S,
    pub(super) asked: Asked,
    pub(super) is_anybody_answered: bool,
}

impl<B, S: Service<Request<B>>> Service<Request<B>> for Noting<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn call(&self, mut request: Request<B>) -> S::Future {
        match self.is_anybody_answered {
            true => self.asked.note(),
            false => drop(request.extensions_mut().insert(self.asked.clone())),
        }
        self.service.call(request)
    }
}
