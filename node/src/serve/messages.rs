//! Messages within a body, of which gRPC puts five bytes before each (PROTOCOL-HTTP2, "Length-Prefixed-Message"): pieces of a body begin
//! and end anywhere in one.

/// Where in a message a body is.
#[derive(Debug, Default)]
pub(super) struct Messages {
    head: [u8; HEAD],
    /// As many bytes of the head are there,
    of_head: usize,
    /// and, once it is whole, so many are still to come.
    left: u64,
}

const HEAD: usize = 5;

impl Messages {
    /// How many messages end in this piece.
    pub(super) fn ended(&mut self, mut piece: &[u8]) -> u64 {
        let mut ended = 0;
        while !piece.is_empty() {
            if self.of_head < HEAD {
                let taken = piece.len().min(HEAD - self.of_head);
                self.head[self.of_head..self.of_head + taken].copy_from_slice(&piece[..taken]);
                (self.of_head, piece) = (self.of_head + taken, &piece[taken..]);
                if self.of_head < HEAD {
                    return ended;
                }
                let [_, length @ ..] = self.head;
                self.left = u64::from(u32::from_be_bytes(length));
            }
            let taken = self.left.min(piece.len() as u64);
            (self.left, piece) = (self.left - taken, &piece[taken as usize..]);
            if self.left == 0 {
                ended += 1;
                self.of_head = 0;
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_wherever_a_body_is_cut() {
        let message = |length: u8| [&[0, 0, 0, 0, length][..], &vec![7; usize::from(length)]].concat();
        let body = [message(3), message(0), message(200), message(1)].concat();
        for size in 1..=body.len() {
            let mut messages = Messages::default();
            assert_eq!(body.chunks(size).map(|piece| messages.ended(piece)).sum::<u64>(), 4, "in pieces of {size}");
        }
        let mut messages = Messages::default();
        assert_eq!(messages.ended(&body[..body.len() - 1]), 3, "the last one is not whole");
    }
}
