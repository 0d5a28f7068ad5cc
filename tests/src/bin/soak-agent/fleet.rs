//! A cluster on its journey: what it runs, and who its members are by now.

use tests::{
    Error,
    cluster::{Layout, Member},
    ports::Ports,
    releases,
    system::Build,
};

use crate::{
    journey::{Direction, HOSTS, Kills, Leg, NEWCOMERS, Replacement, Scaling},
    rollout::{self, Change, Rollout},
};

/// What was to be done, and what came of it.
pub type Told = (String, Result<Rollout, Error>);

pub struct Fleet {
    layout: Layout,
    build: Build,
    /// Of members that came on the way.
    ports: Vec<Ports>,
    /// How many members there ever were.
    ever: usize,
    /// How many rollouts, each of which has keys of its own under load.
    rollouts: usize,
    /// How many values there are beside those.
    filled: usize,
}

/// Values of so many bytes, and so many of them in a megabyte.
const VALUE: usize = 50_000;
const VALUES: usize = 20;

impl Fleet {
    pub fn of(layout: Layout, build: Build) -> Self {
        Self { layout, build, ports: Vec::new(), ever: HOSTS, rollouts: 0, filled: 0 }
    }

    /// One leg: one rollout, or two where it goes there and back.
    pub async fn take(&mut self, leg: &Leg) -> Result<Vec<Told>, Error> {
        match leg {
            Leg::Roll(direction) => Ok(vec![self.roll(direction).await?]),
            Leg::Replace(replacement) => Ok(vec![self.replace(replacement).await?]),
            Leg::Scale(scaling) => self.scale(scaling).await,
            Leg::Restore(kills) => Ok(vec![self.restore(kills).await]),
            Leg::Guard(kills) => {
                let number = self.next();
                let guarded = rollout::guard(&self.layout, &self.build, kills, number).await;
                Ok(vec![(format!("{}: each member ended under guard", self.build), guarded)])
            }
        }
    }

    async fn restore(&mut self, kills: &Kills) -> Told {
        let number = self.next();
        let restored = rollout::restore(&self.layout, &self.build, kills, number).await;
        (format!("{}: restored", self.build), restored)
    }

    /// Writes so many megabytes.
    pub async fn fill(&mut self, megabytes: usize) -> Result<(), Error> {
        self.filled = megabytes * VALUES;
        let client = self.layout.client(&self.layout.members[0])?;
        for number in 0..self.filled {
            client
                .put(&format!("filled/{number}"), &number.to_string().repeat(VALUE / number.to_string().len()))
                .await?;
        }
        Ok(())
    }

    /// Reads it back, through one member after the other.
    ///
    /// # Errors
    /// Some of it is not there, or not as it was written.
    pub async fn is_filled(&self) -> Result<(), Error> {
        for (number, member) in (0..self.filled).zip(self.layout.members.iter().cycle()) {
            let found = self.layout.client(member)?.get(&format!("filled/{number}")).await?;
            let is_whole = found.is_some_and(|kv| {
                String::from_utf8_lossy(&kv.value) == number.to_string().repeat(VALUE / number.to_string().len())
            });
            if !is_whole {
                return Err(format!("{} has not what was written as filled/{number}", member.name).into());
            }
        }
        Ok(())
    }

    async fn roll(&mut self, direction: &Direction) -> Result<Told, Error> {
        let to = releases::get(self.layout.system, direction.to)?;
        let over = direction.over.map(|minor| releases::get(self.layout.system, minor)).transpose()?;
        let backup = if direction.is_backed_up { ", backed up" } else { "" };
        let what = format!("{} to {}{backup}", self.build, to.release);
        let number = self.next();
        let rolled = rollout::roll(&self.layout, (over.as_ref(), &to), direction, number).await;
        if rolled.is_ok() {
            rollout::all_run_on(&self.layout, &to).await?;
            self.layout.release = to.release.clone();
            self.build = to;
        }
        Ok((what, rolled))
    }

    async fn replace(&mut self, Replacement { member, kills }: &Replacement) -> Result<Told, Error> {
        let newcomers = self.newcomers(1)?;
        let (name, by) = (self.layout.members[*member].name.clone(), newcomers[0].name.clone());
        let kind = ("Replace", format!("replace: {{ member: {name}, by: {by} }}"));
        let change = Change { newcomers: &newcomers, leave: &[*member], kind };
        let number = self.next();
        let replaced = rollout::change(&mut self.layout, &self.build, &change, kills, number).await;
        Ok((format!("{}: {name} by {by}", self.build), replaced))
    }

    async fn scale(&mut self, Scaling { up, leave, down }: &Scaling) -> Result<Vec<Told>, Error> {
        let newcomers = self.newcomers(NEWCOMERS)?;
        let all = members(self.layout.members.iter().chain(&newcomers));
        let change = Change { newcomers: &newcomers, leave: &[], kind: ("Scale", all.clone()) };
        let number = self.next();
        let grown = rollout::change(&mut self.layout, &self.build, &change, up, number).await;
        let has_grown = grown.is_ok();
        let mut told = vec![(format!("{}: {all}", self.build), grown)];
        if has_grown {
            let places = self.layout.members.iter().enumerate();
            let stay = members(places.filter(|(at, _)| !leave.contains(at)).map(|(_, member)| member));
            let change = Change { newcomers: &[], leave, kind: ("Scale", stay.clone()) };
            let number = self.next();
            let shrunk = rollout::change(&mut self.layout, &self.build, &change, down, number).await;
            told.push((format!("{}: {stay}", self.build), shrunk));
        }
        Ok(told)
    }

    fn next(&mut self) -> usize {
        self.rollouts += 1;
        self.rollouts
    }

    fn newcomers(&mut self, count: usize) -> Result<Vec<Member>, Error> {
        let ports = Ports::lease(2 * count)?;
        let at = |(at, pair): (usize, &[u16])| self.layout.newcomer(&self.build, self.ever + at, (pair[0], pair[1]));
        let newcomers = ports.numbers.chunks_exact(2).enumerate().map(at).collect();
        self.ports.push(ports);
        self.ever += count;
        newcomers
    }
}

/// A playbook's line.
fn members<'a>(members: impl Iterator<Item = &'a Member>) -> String {
    format!("members: [{}]", members.map(|member| member.name.as_str()).collect::<Vec<_>>().join(", "))
}
