//! Ansible: the collection's role, played by the real `ansible-playbook` over ssh on hosts with members.

mod broken;
mod clusters;
mod interrupted;
mod lint;
mod play;
mod refused;
mod restored;
mod serial;
mod site;
mod together;
