//! Scenarios that run on both systems, from one table.

/// One test of each scenario that is named, on each system: `node::NAME` and `etcd::NAME`.
///
/// A scenario is an `async fn NAME(system: System)` beside the table. What is written before its name, such as
/// `#[ignore = "slow: why"]`, counts on both systems; behind `node` or `etcd`, on that one alone.
#[macro_export]
macro_rules! on_both {
    ($($(#[$both:meta])* $scenario:ident $(, node #[$node:meta])? $(, etcd #[$etcd:meta])?;)+) => {
        mod node {
            $(
                $(#[$both])*
                $(#[$node])?
                #[tokio::test(flavor = "multi_thread")]
                async fn $scenario() {
                    super::$scenario($crate::system::System::Node).await;
                }
            )+
        }

        mod etcd {
            $(
                $(#[$both])*
                $(#[$etcd])?
                #[tokio::test(flavor = "multi_thread")]
                async fn $scenario() {
                    super::$scenario($crate::system::System::Etcd).await;
                }
            )+
        }
    };
}
