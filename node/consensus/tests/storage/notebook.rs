//! A state machine that writes down what it is told.

use std::{
    io::{BufRead, Write},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use consensus::{Content, Frozen, Machine, Restored, Stop};

#[derive(Default)]
pub struct Notebook {
    lines: Mutex<Vec<Bytes>>,
}

impl Notebook {
    pub fn lines(&self) -> Vec<Bytes> {
        self.lines.lock().unwrap().clone()
    }
}

impl Machine for Notebook {
    fn apply(&self, entries: &[(u64, Content)]) -> Result<(), Stop> {
        self.lines.lock().unwrap().extend(entries.iter().filter_map(|(_, content)| match content {
            Content::Command(command) => Some(command.clone()),
            Content::Nothing | Content::Members(_) => None,
        }));
        Ok(())
    }

    fn freeze(&self) -> Frozen {
        let lines = self.lines.lock().unwrap().clone();
        Box::new(move |out: &mut dyn Write| {
            lines.iter().try_for_each(|line| {
                out.write_all(&(line.len() as u32).to_le_bytes())?;
                out.write_all(line)
            })
        })
    }

    fn read_state(self: Arc<Self>, bytes: &mut dyn BufRead) -> Result<Restored, Stop> {
        let (mut lines, mut length) = (Vec::new(), [0; 4]);
        while bytes.read(&mut length[..1])? == 1 {
            bytes.read_exact(&mut length[1..])?;
            let mut line = vec![0; u32::from_le_bytes(length) as usize];
            bytes.read_exact(&mut line)?;
            lines.push(line.into());
        }
        Ok(Box::new(move || {
            *self.lines.lock().unwrap() = lines;
            Ok(())
        }))
    }
}
