//! `agent man` and `agent completions`: the command line's own definition, for man(1) and for shells.

use std::io;

use clap::builder::PossibleValuesParser;
use clap_complete::{Shell, generate};
use clap_mangen::{
    Man,
    roff::{Roff, bold, roman},
};

use super::{Outcome, shown};
use crate::{cli, event::trouble::Trouble, playbook::reference::FIELDS, report::stop::reason::Reason};

/// Prints the manual page: the agent, each of its verbs, and every end with its exit code.
///
/// # Errors
/// It cannot be written down.
pub fn manual() -> Result<Outcome, Trouble> {
    let page = page().map_err(|error| Trouble::System(format!("no manual page: {error}")))?;
    Ok(shown(page.clone(), "text", page.into()))
}

fn page() -> io::Result<String> {
    let command = cli::definition();
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        page.extend(section(verb)?);
    }
    ends().to_writer(&mut page)?;
    Ok(String::from_utf8_lossy(&page).chars().map(escaped).collect())
}

/// As each roff reads it, whatever characters it takes a file to be in (groff_char(7)).
fn escaped(c: char) -> String {
    if c.is_ascii() { c.into() } else { format!("\\[u{:04X}]", u32::from(c)) }
}

/// A verb's part: clap gives each section a title of the first rank.
fn section(verb: &clap::Command) -> io::Result<Vec<u8>> {
    let name = format!("agent {}", verb.get_name());
    let man = Man::new(verb.clone().bin_name(&name).disable_help_flag(true));
    let mut parts = Vec::new();
    man.render_synopsis_section(&mut parts)?;
    man.render_description_section(&mut parts)?;
    if verb.get_arguments().next().is_some() {
        man.render_options_section(&mut parts)?;
    }
    let parts = String::from_utf8_lossy(&parts).replace("\n.SH ", "\n.SS ");
    Ok(format!(".SH {}\n{parts}", name.to_uppercase().replace(' ', "\\ ")).into_bytes())
}

fn ends() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    roff.text([roman(
        "An end has an exit code and a reason. \"3, 1\" is 3, or 1 once this process has stopped a member. \
         agent plan exits 3 whatever agent run would be refused for, but for the user's role in etcd, of which it warns.",
    )]);
    for reason in Reason::ALL {
        roff.control("TP", []);
        roff.text([roman(format!("{}  ", reason.exit().column())), bold(reason.name())]);
        roff.text([roman(format!("{}. Then: {}.", reason.meaning(), reason.remedy()))]);
    }
    roff
}

/// Prints a shell's completions; fields of the playbook among them.
pub fn completions(typed: &cli::Completions) -> Outcome {
    let fields = PossibleValuesParser::new(FIELDS.iter().map(|field| field.path));
    let mut command = cli::definition()
        .mut_subcommand("explain", |explain| explain.mut_arg("field", |field| field.value_parser(fields)));
    let shell = match typed.shell {
        cli::Shell::Bash => Shell::Bash,
        cli::Shell::Zsh => Shell::Zsh,
        cli::Shell::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut command, "agent", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    shown(script.clone(), "text", script.into())
}
