//! All of the model checker is its tests, `tests/model/` and, of changes of members, `tests/members/`; a package has to have a library.
