//! Downloads from a real server that breaks off.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use agent::host::release::{
    digest::Sha256,
    download::{DownloadError, MAX_BYTES, Pace, clear, download, download_at},
};

use crate::web::{Turn, Web};

/// No two bytes near each other repeat at any power of two, so that a wrong offset shows.
fn content() -> Vec<u8> {
    (0..300_000_u32).map(|number| (number % 251) as u8).collect()
}

async fn get(web: &Web, content: &[u8], folder: &Path) -> Result<PathBuf, DownloadError> {
    download(&web.url, Sha256::of(content), folder, &|_, _| {}).await
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_broken_download_goes_on_where_it_broke() {
    let (folder, content) = (tempfile::tempdir().unwrap(), content());
    let web = Web::serve(&content, &[Turn::Break(100_000), Turn::Break(50_001), Turn::Whole]);
    let seen = AtomicU64::new(0);
    let progress = |have, total| {
        assert_eq!(total, Some(300_000));
        assert!(seen.swap(have, Ordering::Relaxed) <= have);
    };
    let file = download(&web.url, Sha256::of(&content), folder.path(), &progress).await.unwrap();
    assert_eq!(fs::read(&file).unwrap(), content);
    assert_eq!((seen.into_inner(), web.asked()), (300_000, vec![None, Some(100_000), Some(150_001)]));

    assert_eq!(get(&web, &content, folder.path()).await.unwrap(), file);
    assert_eq!(web.asked().len(), 3, "what is there is not downloaded again");
    fs::write(&file, "damaged since").unwrap();
    assert_eq!(fs::read(get(&web, &content, folder.path()).await.unwrap()).unwrap(), content);

    clear(folder.path()).unwrap();
    clear(folder.path()).unwrap();
    assert!(!folder.path().exists());
}

#[tokio::test]
async fn a_download_goes_on_after_the_agent_was_restarted() {
    let (folder, content) = (tempfile::tempdir().unwrap(), content());
    {
        let web = Web::serve(&content, &[Turn::Hang(120_000)]);
        let (arrived, half) = tokio::sync::oneshot::channel();
        let arrived = std::sync::Mutex::new(Some(arrived));
        let progress = move |have, _| {
            if have == 120_000 {
                arrived.lock().unwrap().take().unwrap().send(()).unwrap();
            }
        };
        let (url, sha256, path) = (web.url.clone(), Sha256::of(&content), folder.path().to_owned());
        let killed = tokio::spawn(async move { download(&url, sha256, &path, &progress).await });
        half.await.unwrap();
        killed.abort();
        assert!(killed.await.unwrap_err().is_cancelled());
    }
    let web = Web::serve(&content, &[Turn::Whole]);
    assert_eq!(fs::read(get(&web, &content, folder.path()).await.unwrap()).unwrap(), content);
    assert_eq!(web.asked(), [Some(120_000)]);
}

#[tokio::test]
async fn every_kind_of_server_will_do() {
    let content = content();
    for (turns, requests) in [
        (vec![Turn::Break(70_000), Turn::NoRange], 2), // begins again
        (vec![Turn::Chunked], 1),                      // says no length
        (vec![Turn::Status(503), Turn::Status(429), Turn::Whole], 3), // busy for a moment
        (vec![Turn::Break(0), Turn::Break(0), Turn::Whole], 3), // hangs up before the first byte
    ] {
        let (folder, web) = (tempfile::tempdir().unwrap(), Web::serve(&content, &turns));
        assert_eq!(fs::read(get(&web, &content, folder.path()).await.unwrap()).unwrap(), content, "{turns:?}");
        assert_eq!(web.asked().len(), requests, "{turns:?}");
    }
}

#[tokio::test]
async fn other_content_is_refused_and_nothing_of_it_stays() {
    let (folder, content) = (tempfile::tempdir().unwrap(), content());
    let web = Web::serve(b"something else", &[Turn::Whole]);
    let error = get(&web, &content, folder.path()).await.unwrap_err();
    assert!(matches!(error, DownloadError::Other { found, .. } if found == Sha256::of(b"something else")), "{error}");
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_part_of_another_file_costs_one_more_download() {
    let content = content();
    for part in [vec![7; 1_000], vec![7; 300_000], vec![7; 300_001]] {
        let (folder, web) = (tempfile::tempdir().unwrap(), Web::serve(&content, &[Turn::Whole]));
        let name = folder.path().join(format!("{}.part", Sha256::of(&content)));
        fs::write(&name, &part).unwrap();
        assert_eq!(fs::read(get(&web, &content, folder.path()).await.unwrap()).unwrap(), content);
        assert_eq!(web.asked(), [Some(part.len()), None]);
        assert_eq!(names(folder.path()), [Sha256::of(&content).to_string()]);
    }
}

#[tokio::test]
async fn a_server_that_never_gets_there_is_given_up() {
    let (folder, content) = (tempfile::tempdir().unwrap(), content());
    let web = Web::serve(&content, &[Turn::Status(404)]);
    let error = get(&web, &content, folder.path()).await.unwrap_err();
    assert!(matches!(error, DownloadError::Status { status, .. } if status == 404), "{error}");
    assert_eq!(web.asked().len(), 1, "a refusal is not asked for again");

    let web = Web::serve(&content, &[Turn::Promise(MAX_BYTES + 1)]);
    let error = get(&web, &content, folder.path()).await.unwrap_err();
    assert!(matches!(error, DownloadError::TooLarge { .. }), "{error}");

    let web = Web::serve(&content, &[Turn::Break(1_000), Turn::Break(0)]);
    let error = get(&web, &content, folder.path()).await.unwrap_err();
    assert!(matches!(error, DownloadError::Broken { .. }), "{error}");
    assert_eq!(web.asked().len(), 5);
    assert_eq!(names(folder.path()).len(), 1, "what has arrived is kept for the next run");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_only_keeps_the_line_open_is_given_up() {
    let (folder, content) = (tempfile::tempdir().unwrap(), content());
    let pace = Pace { bytes: 50_000, within: Duration::from_millis(200) };
    let get = async |turns: &[Turn]| {
        let web = Web::serve(&content, turns);
        let file = download_at(pace, &web.url, Sha256::of(&content), folder.path(), &|_, _| {}).await;
        (file, web.asked().len())
    };
    // What has arrived in earlier tries does not count for the later ones.
    let (file, asked) =
        tokio::time::timeout(Duration::from_secs(60), get(&[Turn::Break(60_000), Turn::Drip])).await.unwrap();
    let error = file.unwrap_err();
    assert!(matches!(error, DownloadError::Slow { .. }), "{error}");
    assert!(error.to_string().contains("fewer than 50000 bytes in 200ms"), "{error}");
    assert_eq!(asked, 5);
    let (file, _) = get(&[Turn::Drip, Turn::Drip, Turn::Whole]).await;
    assert_eq!(fs::read(file.unwrap()).unwrap(), content, "one that gets there is waited for");
}

#[tokio::test]
async fn what_gives_access_to_a_mirror_is_in_no_message() {
    let content = content();
    let promised = Turn::Promise(MAX_BYTES + 1);
    for turn in [Turn::Status(404), Turn::Status(503), Turn::Break(0), promised, Turn::Whole] {
        let folder = tempfile::tempdir().unwrap();
        let mut web = Web::serve(b"something else", &[turn, turn, turn, turn, turn]);
        web.url.set_query(Some("token=hunter2"));
        web.url.set_password(Some("hunter2")).unwrap();
        let error = get(&web, &content, folder.path()).await.unwrap_err();
        let mut told = format!("{error:?}");
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = cause {
            told.push_str(&error.to_string());
            cause = error.source();
        }
        assert!(told.contains("/artifact") && !told.contains("hunter2"), "{turn:?}: {told}");
    }
}
