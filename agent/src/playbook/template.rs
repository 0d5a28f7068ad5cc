//! `{{version}}`, `{{node}}`, `{{binary}}`, `{{initial_cluster}}`: the only templates, expanded in one pass and never in what was
//! put in. They are for argv lists, variables and the artifact's source; there is no shell and no escape.

use std::path::Path;

use proto::Release;

/// What the templates stand for at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// `{{version}}`: the release about to be started.
    pub version: &'a Release,
    /// `{{node}}`: the member's name.
    pub node: &'a str,
    /// `{{binary}}`: the node's `binary`, where it has one.
    pub binary: Option<&'a Path>,
    /// `{{initial_cluster}}`: the members as the node was first started beside them; empty where no agent did that.
    pub initial_cluster: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// `{{version}}`
    Version,
    /// `{{node}}`
    Node,
    /// `{{binary}}`
    Binary,
    /// `{{initial_cluster}}`
    InitialCluster,
}

/// A text that cannot be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A name that stands for nothing.
    #[error("there is no template `{{{{{0}}}}}`")]
    Unknown(String),
    /// `{{` without `}}`.
    #[error("`{{{{` is not followed by `}}}}`")]
    Open,
    /// `{{binary}}` for a node without `binary`.
    #[error("`{{{{binary}}}}` stands for nothing: the node has no `binary`")]
    NoBinary,
    /// The path cannot be part of a text.
    #[error("`{{{{binary}}}}` is a path that is not UTF-8")]
    BinaryNotText,
}

/// A text cut into what stands for itself and what is to be replaced.
enum Piece<'t> {
    Literal(&'t str),
    Template(Name),
}

/// Replaces every template in `text`.
///
/// # Errors
/// [`TemplateError`]; for the texts of a playbook that was loaded only `BinaryNotText` is left.
pub fn expand(text: &str, context: &Context<'_>) -> Result<String, TemplateError> {
    let mut expanded = String::with_capacity(text.len());
    for piece in pieces(text)? {
        match piece {
            Piece::Literal(literal) => expanded.push_str(literal),
            Piece::Template(Name::Version) => expanded.push_str(&context.version.to_string()),
            Piece::Template(Name::Node) => expanded.push_str(context.node),
            Piece::Template(Name::Binary) => expanded.push_str(binary(context)?),
            Piece::Template(Name::InitialCluster) => expanded.push_str(context.initial_cluster),
        }
    }
    Ok(expanded)
}

/// Replaces every template in each text of an argv list.
///
/// # Errors
/// As [`expand`].
pub fn expand_all(argv: &[String], context: &Context<'_>) -> Result<Vec<String>, TemplateError> {
    argv.iter().map(|word| expand(word, context)).collect()
}

/// The templates in `text`, in order.
///
/// # Errors
/// An unknown name, or `{{` without `}}`.
pub fn names(text: &str) -> Result<Vec<Name>, TemplateError> {
    let name = |piece| if let Piece::Template(name) = piece { Some(name) } else { None };
    Ok(pieces(text)?.into_iter().filter_map(name).collect())
}

fn binary<'a>(context: &Context<'a>) -> Result<&'a str, TemplateError> {
    context.binary.ok_or(TemplateError::NoBinary)?.to_str().ok_or(TemplateError::BinaryNotText)
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, TemplateError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((literal, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").ok_or(TemplateError::Open)?;
        pieces.extend([Piece::Literal(literal), Piece::Template(name_of(name)?)]);
        rest = after;
    }
    pieces.push(Piece::Literal(rest));
    Ok(pieces)
}

fn name_of(name: &str) -> Result<Name, TemplateError> {
    match name {
        "version" => Ok(Name::Version),
        "node" => Ok(Name::Node),
        "binary" => Ok(Name::Binary),
        "initial_cluster" => Ok(Name::InitialCluster),
        _ => Err(TemplateError::Unknown(name.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_replaced_once_and_nothing_else_is() {
        let version = Release::new(3, 6, 14);
        let context = Context {
            version: &version,
            node: "{{binary}}",
            binary: Some(Path::new("/opt/etcd")),
            initial_cluster: "",
        };
        for (text, expanded) in [
            ("", Ok("")),
            ("plain {x} }}", Ok("plain {x} }}")),
            ("{{version}}", Ok("3.6.14")),
            ("a{{version}}b{{version}}c", Ok("a3.6.14b3.6.14c")),
            ("{{node}}", Ok("{{binary}}")),
            ("--x={{binary}}", Ok("--x=/opt/etcd")),
            ("{{foo}}", Err(TemplateError::Unknown("foo".into()))),
            ("{{ node }}", Err(TemplateError::Unknown(" node ".into()))),
            ("{{}}", Err(TemplateError::Unknown(String::new()))),
            ("{{version", Err(TemplateError::Open)),
            ("{{{version}}}", Err(TemplateError::Unknown("{version".into()))),
        ] {
            assert_eq!(expand(text, &context), expanded.map(String::from), "{text}");
        }
        let without = Context { binary: None, ..context };
        assert_eq!(expand("{{binary}}", &without), Err(TemplateError::NoBinary));
    }

    #[test]
    fn an_unknown_template_is_shown_as_it_was_written() {
        assert_eq!(TemplateError::Unknown("foo".into()).to_string(), "there is no template `{{foo}}`");
        assert_eq!(TemplateError::Open.to_string(), "`{{` is not followed by `}}`");
    }
}
