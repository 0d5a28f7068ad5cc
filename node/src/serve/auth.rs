//! etcd's `Auth`, as an etcd answers whose auth is off.

use proto::etcdserverpb::{
    AuthEnableRequest, AuthEnableResponse, AuthRoleAddRequest, AuthRoleAddResponse, AuthUserAddRequest,
    AuthUserAddResponse, AuthUserGetRequest, AuthUserGetResponse, AuthUserGrantRoleRequest, AuthUserGrantRoleResponse,
    AuthenticateRequest, AuthenticateResponse, auth_server::Auth,
};
use tonic::{Request, Response, Status, async_trait};

use super::context::ServiceContext;

fn not_yet<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("this release of the node has no users and roles"))
}

#[async_trait]
impl Auth for ServiceContext {
    /// Clients with a password ask for a token first, and go on without one after these words.
    async fn authenticate(&self, _: Request<AuthenticateRequest>) -> Result<Response<AuthenticateResponse>, Status> {
        Err(Status::failed_precondition("etcdserver: authentication is not enabled"))
    }

    async fn auth_enable(&self, _: Request<AuthEnableRequest>) -> Result<Response<AuthEnableResponse>, Status> {
        not_yet()
    }

    async fn user_add(&self, _: Request<AuthUserAddRequest>) -> Result<Response<AuthUserAddResponse>, Status> {
        not_yet()
    }

    async fn user_get(&self, _: Request<AuthUserGetRequest>) -> Result<Response<AuthUserGetResponse>, Status> {
        not_yet()
    }

    async fn user_grant_role(
        &self,
        _: Request<AuthUserGrantRoleRequest>,
    ) -> Result<Response<AuthUserGrantRoleResponse>, Status> {
        not_yet()
    }

    async fn role_add(&self, _: Request<AuthRoleAddRequest>) -> Result<Response<AuthRoleAddResponse>, Status> {
        not_yet()
    }
}
