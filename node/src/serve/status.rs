//! A refusal as gRPC has it.

use tonic::{Code, Status};

use crate::{api_error::ApiError, state::Refusal};

impl From<ApiError> for Status {
    fn from(error: ApiError) -> Self {
        Self::new(Code::from(error.code() as i32), error.to_string())
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Request(error) => error.into(),
            Refusal::FeatureOff(_) | Refusal::AboveVersion(_) => Self::failed_precondition(refusal.to_string()),
        }
    }
}
