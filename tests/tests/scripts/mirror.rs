//! A mirror of etcd's release archives on this machine: files of a folder, over HTTP.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    thread,
};

/// Serves a folder until the test process ends, and says where.
pub(crate) fn serve(folder: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(stream, &folder)));
    url
}

fn answer(mut stream: TcpStream, folder: &Path) {
    let mut lines = BufReader::new(stream.try_clone().expect("a second handle")).lines().map_while(Result::ok);
    let request = lines.next().unwrap_or_default();
    lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
    let path = request.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
    let (status, body) = match fs::read(folder.join(path)) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
}
