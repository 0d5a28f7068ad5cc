use super::*;
use crate::host::process::credentials::Credentials;

fn own() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

fn old_data(data: &Path) {
    fs::create_dir_all(data.join("member")).unwrap();
    fs::write(data.join("member/old"), "").unwrap();
}

fn new_data(place: &Place) {
    fs::create_dir_all(place.made().join("member")).unwrap();
    fs::write(place.made().join("member/new"), "").unwrap();
}

#[test]
fn old_and_new_are_exchanged_and_the_old_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("m1");
    old_data(&data);
    let place = Place::of(&data, "restored-1").unwrap();
    // What an earlier try has left is no part of the next one.
    fs::create_dir(folder.path().join("m1.restored-1")).unwrap();
    fs::write(folder.path().join("m1.restored-1/rest"), "").unwrap();
    drop(place.begin(own()).unwrap());
    new_data(&place);
    place.settle().unwrap();
    assert_eq!(place.exchange().unwrap(), None);
    assert!(data.join("member/new").exists() && place.made().join("member/old").exists());
    let aside = place.put_aside().unwrap().unwrap();
    assert!(aside.join("member/old").exists(), "{}", aside.display());
    assert!(aside.file_name().unwrap().to_string_lossy().starts_with("m1.archived-unknown-"), "{}", aside.display());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
    assert_eq!(place.archives(), [aside]);
    assert_eq!(place.put_aside().unwrap(), None, "done again it does nothing more");
}

#[test]
fn what_else_lies_in_a_data_directory_stays() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("m1");
    fs::create_dir_all(data.join("member")).unwrap();
    fs::write(data.join("member/old"), "").unwrap();
    fs::write(data.join("cert"), "").unwrap();
    let place = Place::of(&data, "restored-1").unwrap();
    drop(place.begin(own()).unwrap());
    fs::create_dir_all(place.made().join("member")).unwrap();
    fs::write(place.made().join("member/new"), "").unwrap();
    place.exchange().unwrap();
    let aside = place.put_aside().unwrap().unwrap();
    assert!(data.join("member/new").exists() && data.join("cert").exists());
    assert!(aside.join("member/old").exists() && aside.starts_with(&data));
}

/// A member that has lost its data has not lost what a person keeps beside it.
#[test]
fn what_else_lies_in_a_data_directory_stays_where_the_data_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("m1");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("cert"), "").unwrap();
    let place = Place::of(&data, "restored-1").unwrap();
    drop(place.begin(own()).unwrap());
    fs::create_dir(place.made()).unwrap();
    assert!(!place.fits_made(), "there is no one name to exchange");
    fs::create_dir(place.made().join("member")).unwrap();
    assert!(place.fits_made());
    place.exchange().unwrap();
    assert_eq!(place.put_aside().unwrap(), None);
    assert!(data.join("member").exists() && data.join("cert").exists());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_bundled_nodes_data_is_exchanged_where_nothing_else_lies_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("m1");
    ["snap", "wal"].iter().for_each(|name| fs::create_dir_all(data.join(name)).unwrap());
    fs::write(data.join("identity"), "").unwrap();
    assert!(Place::of(&data, "restored-1").unwrap().fits());
    fs::write(data.join("cert"), "").unwrap();
    assert!(!Place::of(&data, "restored-1").unwrap().fits());
}

/// Something may have come to lie in it since the old data was put beside it, or have gone.
#[test]
fn old_data_is_found_within_and_beside() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("m1");
    let (within, beside) = (data.join("archived-1-x"), folder.path().join("m1.archived-1-x"));
    [&within, &beside].into_iter().for_each(|path| fs::create_dir_all(path).unwrap());
    fs::create_dir(folder.path().join("m2.archived-1-x")).unwrap();
    let place = Place::of(&data, "restored-1").unwrap();
    assert_eq!(place.archives(), [beside, within]);
}

#[test]
fn where_nothing_can_be_made_is_said_before() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::of(&folder.path().join("m1"), "restored-1").unwrap();
    place.must_be_writable().unwrap();
    let nobody = Credentials { uid: 65_534, gid: 65_534, groups: Vec::new() };
    if rustix::process::geteuid().is_root() {
        let refused = place.with_rights(Rights::Of(nobody)).must_be_writable().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }
}

#[test]
fn old_data_that_a_killed_agent_left_is_kept_by_whoever_comes_next() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("m1");
    old_data(&data);
    let first = Place::of(&data, "restored-1").unwrap();
    drop(first.begin(own()).unwrap());
    new_data(&first);
    first.exchange().unwrap(); // and killed
    let second = Place::of(&data, "restored-2").unwrap();
    let left = second.others();
    assert_eq!(left.len(), 1);
    let aside = left[0].clear().unwrap().unwrap();
    assert!(aside.join("member/old").exists());
    // The same name again is no other case.
    drop(first.begin(own()).unwrap());
    new_data(&first);
    assert_eq!(first.clear().unwrap(), None, "what was made and never served may go");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn where_nothing_can_be_exchanged_the_old_has_its_last_name_first() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("m1");
    old_data(&data);
    let place = Place::of(&data, "restored-1").unwrap();
    drop(place.begin(own()).unwrap());
    new_data(&place);
    let aside = place.one_after_the_other(&place.made(), &data).unwrap();
    assert!(data.join("member/new").exists() && aside.join("member/old").exists());
    assert_eq!(place.put_aside().unwrap(), None);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn a_link_in_the_place_of_what_was_made_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (data, others) = (folder.path().join("m1"), folder.path().join("others"));
    [&data, &others, &others.join("data")].into_iter().for_each(|path| fs::create_dir(path).unwrap());
    fs::write(others.join("data/file"), "").unwrap();
    let place = Place::of(&data, "restored-1").unwrap();
    std::os::unix::fs::symlink(&others, folder.path().join("m1.restored-1")).unwrap();
    place.put_aside().unwrap();
    assert!(others.join("data/file").exists());
    assert!(!folder.path().join("m1.restored-1").exists(), "it is in the way of a restore");
}

#[test]
fn without_old_data_there_is_nothing_to_put_aside() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("m1");
    let place = Place::of(&data, "restored-1").unwrap();
    drop(place.begin(own()).unwrap());
    fs::create_dir(place.made()).unwrap();
    place.settle().unwrap();
    place.exchange().unwrap();
    assert!(data.is_dir());
    assert_eq!(place.put_aside().unwrap(), None);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn what_is_cleared_is_cleared_after_work_that_nobody_waits_for() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::of(&folder.path().join("m1"), "restored-1").unwrap();
    let (has_begun, begun) = tokio::sync::oneshot::channel();
    let making = place.have(move |place| {
        has_begun.send(()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
        place.begin(own()).map(drop)
    });
    tokio::select! {
        _ = making => panic!("it takes longer"),
        begun = begun => begun.unwrap(),
    }
    place.have(Place::clear).await.unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
