//! A web server of one file that can break off, on a real socket.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::Duration,
};

use reqwest::Url;

/// How one request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The range that is asked for.
    Whole,
    /// So many bytes of it; then the connection breaks.
    Break(usize),
    /// So many bytes of it; then silence, until the other side hangs up.
    Hang(usize),
    /// One byte every few milliseconds.
    Drip,
    /// The whole file, whatever range is asked for.
    NoRange,
    /// Only this status.
    Status(u16),
    /// A promise of so many bytes, and none of them.
    Promise(u64),
    /// All of it, without saying how long it is, in chunks.
    Chunked,
}

/// The server; it ends with the value.
pub struct Web {
    pub url: Url,
    asked: Arc<Mutex<Vec<Option<usize>>>>,
    address: std::net::SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl Web {
    /// Serves this content, each request in its turn; the last turn stands for all that follow.
    pub fn serve(content: &[u8], turns: &[Turn]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (content, turns, log) = (content.to_vec(), turns.to_vec(), asked.clone());
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                let Some(range) = read_request(stream.as_ref().unwrap()) else { return };
                let turn = {
                    let mut log = log.lock().unwrap();
                    log.push(range);
                    turns[(log.len() - 1).min(turns.len() - 1)]
                };
                // An agent that was killed in the middle is what the tests are about.
                let _ = answer(stream.unwrap(), turn, &content, range);
            }
        });
        let url = format!("http://{address}/files/artifact").parse().unwrap();
        Self { url, asked, address, thread: Some(thread) }
    }

    /// The offset that each request asked for; `None` for the whole file.
    pub fn asked(&self) -> Vec<Option<usize>> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        // A connection without a request ends it.
        drop(TcpStream::connect(self.address));
        self.thread.take().unwrap().join().unwrap();
    }
}

fn read_request(stream: &TcpStream) -> Option<Option<usize>> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.next()?;
    let mut range = None;
    for line in lines.take_while(|line| !line.is_empty()) {
        if let Some(from) = line.to_lowercase().strip_prefix("range: bytes=") {
            range = Some(from.trim_end_matches('-').parse().unwrap());
        }
    }
    Some(range)
}

fn answer(mut stream: TcpStream, turn: Turn, content: &[u8], range: Option<usize>) -> std::io::Result<()> {
    let close = "Connection: close\r\n";
    match turn {
        Turn::Status(status) => write!(stream, "HTTP/1.1 {status} No\r\n{close}Content-Length: 0\r\n\r\n"),
        Turn::Promise(bytes) => write!(stream, "HTTP/1.1 200 OK\r\n{close}Content-Length: {bytes}\r\n\r\n"),
        Turn::Chunked => {
            write!(stream, "HTTP/1.1 200 OK\r\n{close}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", content.len())?;
            stream.write_all(content)?;
            write!(stream, "\r\n0\r\n\r\n")
        }
        _ => {
            let from = range.filter(|_| turn != Turn::NoRange);
            let Some(body) = content.get(from.unwrap_or(0)..).filter(|body| from.is_none() || !body.is_empty()) else {
                return write!(stream, "HTTP/1.1 416 No\r\n{close}Content-Length: 0\r\n\r\n");
            };
            match from {
                Some(from) => write!(
                    stream,
                    "HTTP/1.1 206 Partial\r\nContent-Range: bytes {from}-{}/{}\r\n",
                    content.len() - 1,
                    content.len()
                )?,
                None => write!(stream, "HTTP/1.1 200 OK\r\n")?,
            }
            write!(stream, "{close}Content-Length: {}\r\n\r\n", body.len())?;
            if turn == Turn::Drip {
                for byte in body {
                    stream.write_all(&[*byte])?;
                    thread::sleep(Duration::from_millis(5));
                }
            }
            let sent = match turn {
                Turn::Drip => 0,
                Turn::Break(bytes) | Turn::Hang(bytes) => bytes.min(body.len()),
                _ => body.len(),
            };
            stream.write_all(&body[..sent])?;
            if let Turn::Hang(_) = turn {
                stream.set_read_timeout(Some(Duration::from_secs(60)))?;
                let _ = std::io::Read::read(&mut stream, &mut [0]);
            }
            Ok(())
        }
    }
}
