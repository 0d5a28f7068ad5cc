//! What the sources say, beside what the releases said.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    ServiceDescriptorProto,
    field_descriptor_proto::{Label, Type},
};

use crate::{RELEASES, formats, wire::HELD};

/// The messages of ours; of etcd's those that are held in one of these.
fn sources() -> FileDescriptorSet {
    let node = Path::new(env!("CARGO_MANIFEST_DIR"));
    let proto = node.join("../proto");
    let groups: [(&[&str], _); 3] = [
        (&["state.proto", "cluster.proto", "entry.proto", "peer.proto"], node.join("proto")),
        (&["raft.proto"], node.join("consensus/proto")),
        (&["baton/counters.proto", "baton/members.proto", "etcd/rpc.proto", "etcd/kv.proto"], proto),
    ];
    let compiled = groups.map(|(files, folder)| protox::compile(files, [folder]).unwrap().file);
    FileDescriptorSet { file: compiled.into_iter().flatten().collect() }
}

/// Everything that has a name, by that.
#[derive(Default)]
struct Lines {
    messages: BTreeMap<String, Vec<String>>,
    /// Which messages and enums one names.
    names: BTreeMap<String, Vec<String>>,
    calls: Vec<String>,
}

impl Lines {
    fn of(files: &FileDescriptorSet) -> Self {
        let mut lines = Self::default();
        for FileDescriptorProto { package, message_type, enum_type, service, .. } in &files.file {
            let package = package.as_deref().unwrap();
            message_type.iter().for_each(|message| lines.message(package, message));
            enum_type.iter().for_each(|of| lines.numbers(package, of));
            if package.starts_with("baton") {
                service.iter().for_each(|service| lines.service(package, service));
            }
        }
        lines
    }

    fn message(&mut self, within: &str, message: &DescriptorProto) {
        let name = format!("{within}.{}", message.name());
        message.nested_type.iter().for_each(|nested| self.message(&name, nested));
        message.enum_type.iter().for_each(|of| self.numbers(&name, of));
        let line = |field: &FieldDescriptorProto| {
            let mut line = format!("{name} {} {} {}", field.number(), field.name(), type_of(field));
            if field.label() == Label::Repeated {
                line += " repeated";
            }
            match field.oneof_index {
                _ if field.proto3_optional() => line += " optional",
                Some(index) => line += &format!(" of {}", message.oneof_decl[index as usize].name()),
                None => {}
            }
            line
        };
        self.messages.insert(name.clone(), message.field.iter().map(line).collect());
        let named = message.field.iter().filter(|field| field.type_name.is_some()).map(type_of);
        let held = HELD.iter().filter(|(field, _)| field.rsplit_once('.').unwrap().0 == name);
        let named = named.chain(held.map(|(_, held)| (*held).to_owned())).collect();
        self.names.insert(name, named);
    }

    fn numbers(&mut self, within: &str, of: &EnumDescriptorProto) {
        let name = format!("{within}.{}", of.name());
        let line = |(number, value): (i32, &str)| format!("{name} {number} {value}");
        let lines = of.value.iter().map(|value| line((value.number(), value.name()))).collect();
        self.messages.insert(name, lines);
    }

    fn service(&mut self, package: &str, service: &ServiceDescriptorProto) {
        let stream = |is_stream| if is_stream { "stream " } else { "" };
        self.calls.extend(service.method.iter().map(|call| {
            let (asked, answered) = (stream(call.client_streaming()), stream(call.server_streaming()));
            let (input, output) =
                (call.input_type().trim_start_matches('.'), call.output_type().trim_start_matches('.'));
            format!("{package}.{}/{} {asked}{input} -> {answered}{output}", service.name(), call.name())
        }));
    }

    /// Those of ours, and whatever they hold.
    fn all(self) -> BTreeSet<String> {
        let mut wanted: Vec<_> = self.messages.keys().filter(|name| name.starts_with("baton")).cloned().collect();
        let mut taken = BTreeSet::new();
        while let Some(name) = wanted.pop() {
            if taken.insert(name.clone()) {
                wanted.extend(self.names.get(&name).into_iter().flatten().cloned());
            }
        }
        taken.iter().flat_map(|name| self.messages[name].clone()).chain(self.calls).collect()
    }
}

fn type_of(field: &FieldDescriptorProto) -> String {
    match field.r#type() {
        Type::Message | Type::Enum => field.type_name().trim_start_matches('.').to_owned(),
        other => other.as_str_name().trim_start_matches("TYPE_").to_lowercase(),
    }
}

#[test]
fn what_is_stored_and_sent_has_the_numbers_that_the_newest_release_gave_it() {
    let (said, is) = (formats(RELEASES[RELEASES.len() - 1]), Lines::of(&sources()).all());
    let gone: Vec<_> = said.difference(&is).collect();
    assert!(gone.is_empty(), "a release that is out knows this, and the sources do not: {gone:#?}");
    let new: Vec<_> = is.difference(&said).collect();
    assert!(new.is_empty(), "this is of a later release: give that a formats-V.txt, and a disk: {new:#?}");
}

/// What has a name and a number has the same type in each release that knows it, and none forgets it (K-18, K-36).
#[test]
fn each_release_knows_what_the_one_before_knew() {
    for pair in RELEASES.windows(2) {
        let (lower, higher) = (formats(pair[0]), formats(pair[1]));
        let changed: Vec<_> = lower.difference(&higher).collect();
        assert!(
            changed.is_empty(),
            "{} knows this, and {} knows it otherwise or not at all: {changed:#?}",
            pair[0],
            pair[1]
        );
        assert!(lower.len() < higher.len(), "{} and {} are the same", pair[0], pair[1]);
    }
    for release in RELEASES {
        let lines = formats(release);
        let place = |line: &String| line.splitn(3, ' ').take(2).map(str::to_owned).collect::<Vec<_>>();
        let places: BTreeSet<_> = lines.iter().map(place).collect();
        assert_eq!(places.len(), lines.len(), "{release}: a number is there twice");
    }
}
