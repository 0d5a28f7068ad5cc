//! A web server of one file, whose connections break in the middle.

use std::{
    net::Ipv4Addr,
    path::Path,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

use crate::Error;

/// A server at work; it ends with the value.
#[derive(Debug)]
pub struct Web {
    pub url: String,
    asked: Arc<Mutex<Vec<u64>>>,
    task: AbortHandle,
}

impl Web {
    /// Serves this file under its own name. The first `breaking` answers break after half of what they owe.
    ///
    /// # Errors
    /// The file cannot be read, or there is no port.
    pub async fn serve(file: &Path, breaking: usize) -> Result<Self, Error> {
        let content = Arc::new(tokio::fs::read(file).await?);
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}/{name}", listener.local_addr()?);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (content, log, name) = (content.clone(), log.clone(), name.clone());
                // A client that hangs up is what the scenarios are about.
                tokio::spawn(async move { drop(answer(client, &name, &content, &log, breaking).await) });
            }
        });
        Ok(Self { url, asked, task: task.abort_handle() })
    }

    /// From which byte each request asked, in order.
    pub fn asked(&self) -> Vec<u64> {
        self.asked.lock().map(|asked| asked.clone()).unwrap_or_default()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    mut client: TcpStream,
    name: &str,
    content: &[u8],
    log: &Mutex<Vec<u64>>,
    breaking: usize,
) -> Result<(), Error> {
    let (path, from) = request(&mut client).await?;
    if path != format!("/{name}") {
        let none = b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        return Ok(client.write_all(none).await?);
    }
    let is_broken = {
        let mut log = log.lock().map_err(|_| "a request died")?;
        log.push(from.unwrap_or(0));
        log.len() <= breaking
    };
    let body = content.get(usize::try_from(from.unwrap_or(0))?..).unwrap_or_default();
    let status = match from {
        Some(from) => {
            format!("206 Partial Content\r\nContent-Range: bytes {from}-{}/{}", content.len() - 1, content.len())
        }
        None => "200 OK".into(),
    };
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    client.write_all(head.as_bytes()).await?;
    let sent = if is_broken { body.len() / 2 } else { body.len() };
    Ok(client.write_all(&body[..sent]).await?)
}

/// The path that is asked for, and from which byte on.
async fn request(client: &mut TcpStream) -> Result<(String, Option<u64>), Error> {
    let mut lines = BufReader::new(client).lines();
    let first = lines.next_line().await?.ok_or("no request")?;
    let path = first.split(' ').nth(1).ok_or("no path")?.to_owned();
    let mut from = None;
    while let Some(line) = lines.next_line().await?.filter(|line| !line.is_empty()) {
        if let Some(range) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
            from = Some(range.trim_end_matches('-').parse()?);
        }
    }
    Ok((path, from))
}
