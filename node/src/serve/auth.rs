//! etcd's `Auth`, as an etcd answers whose auth is off.

use proto::etcdserverpb::{
    AuthEnableRequest, AuthEnableResponse, AuthRoleAddRequest, AuthRoleAddResponse, AuthRoleListRequest,
    AuthRoleListResponse, AuthStatusRequest, AuthStatusResponse, AuthUserAddRequest, AuthUserAddResponse,
    AuthUserGetRequest, AuthUserGetResponse, AuthUserGrantRoleRequest, AuthUserGrantRoleResponse, AuthUserListRequest,
    AuthUserListResponse, AuthenticateRequest, AuthenticateResponse, auth_server::Auth,
};
use tonic::{Request, Response, Status, async_trait};

use super::context::ServiceContext;

fn not_yet<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("this release of the node has no users and roles"))
}

/// Of a store of users that never changed (etcd, `NewAuthStore`).
const FIRST_REVISION: u64 = 1;

#[async_trait]
impl Auth for ServiceContext {
    async fn auth_status(&self, request: Request<AuthStatusRequest>) -> Result<Response<AuthStatusResponse>, Status> {
        self.admit(request.metadata()).await?;
        let header = self.newest_header();
        Ok(Response::new(AuthStatusResponse { header, enabled: false, auth_revision: FIRST_REVISION }))
    }

    async fn user_list(&self, request: Request<AuthUserListRequest>) -> Result<Response<AuthUserListResponse>, Status> {
        self.admit(request.metadata()).await?;
        Ok(Response::new(AuthUserListResponse { header: self.newest_header(), users: Vec::new() }))
    }

    async fn role_list(&self, request: Request<AuthRoleListRequest>) -> Result<Response<AuthRoleListResponse>, Status> {
        self.admit(request.metadata()).await?;
        Ok(Response::new(AuthRoleListResponse { header: self.newest_header(), roles: Vec::new() }))
    }

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
