//! A member that fails in the way its own executable says; see `tests::sick`.

use std::{env, future::pending, path::Path, process::ExitCode, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use tests::{
    Error,
    sick::{Illness, Order},
};
use tokio::{
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
    time::sleep,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Error> {
    let order = Order::of(Path::new("/proc/self/exe"))?;
    if env::args().any(|argument| argument == "--version") {
        println!("{} Version: {}", order.system, order.version);
        return Ok(ExitCode::SUCCESS);
    }
    match &order.illness {
        Illness::Exits => Ok(ExitCode::FAILURE),
        Illness::Hangs => pending().await,
        Illness::Dies(after_ms) => serve(&order, sleep(Duration::from_millis(*after_ms))).await,
        Illness::DiesOnceThereIs(file) => serve(&order, there_is(file)).await,
    }
}

async fn there_is(file: &Path) {
    while !file.exists() {
        sleep(Duration::from_millis(10)).await;
    }
}

/// The real one dies with this process, however this ends.
async fn serve(order: &Order, death: impl Future<Output = ()>) -> Result<ExitCode, Error> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut child =
        Command::new("setpriv").args(["--pdeathsig", "KILL"]).arg(&order.real).args(env::args().skip(1)).spawn()?;
    tokio::select! {
        _ = child.wait() => {}
        _ = terminated.recv() => end(&mut child, Signal::TERM).await?,
        () = death => end(&mut child, Signal::KILL).await?,
    }
    Ok(ExitCode::FAILURE)
}

async fn end(child: &mut Child, how: Signal) -> Result<(), Error> {
    let pid = child.id().and_then(|pid| Pid::from_raw(pid as i32)).ok_or("it is gone")?;
    kill_process(pid, how)?;
    child.wait().await?;
    Ok(())
}
