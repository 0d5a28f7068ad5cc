//! All of the model checker is its test, `tests/model/`; a package has to have a library.
