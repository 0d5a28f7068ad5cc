//! Chance and clock of the whole process, decided by the seed: whatever a library asks the system for comes from here.
//!
//! tokio, openraft and the standard library's hash maps draw from `getrandom`; where one of them looks at the system's clock,
//! it must not see how busy the machine was. So the two functions of the C library are these, for the simulation's own
//! binary. A seed has a process of its own: some libraries count in statics.
//!
//! Outside of the simulation's hands stays what calls the kernel by itself, without the C library; `sim replays` finds it.

#![allow(unsafe_code, reason = "two functions of the C library are replaced, by its signatures")]

use std::{
    slice,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

static IS_ON: AtomicBool = AtomicBool::new(false);
static STATE: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds since the simulation began.
static NOW: AtomicU64 = AtomicU64::new(0);
static JUMPED: AtomicU64 = AtomicU64::new(0);
/// The day on which it begins, in seconds since 1970: any.
const EPOCH_S: u64 = 1_700_000_000;

/// From now on chance is of this seed, and the clock stands still but for [`advance`].
pub fn take_over(seed: u64) {
    STATE.store(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, Ordering::Relaxed);
    IS_ON.store(true, Ordering::Relaxed);
}

/// The clock of the process goes on by so much.
pub fn advance(nanoseconds: u64) {
    NOW.fetch_add(nanoseconds, Ordering::Relaxed);
}

/// Nanoseconds since the simulation began.
pub fn now() -> u64 {
    NOW.load(Ordering::Relaxed)
}

/// Some machine's clock has jumped ahead by so much.
pub fn jump(nanoseconds: u64) {
    JUMPED.fetch_add(nanoseconds, Ordering::Relaxed);
}

/// As [`now`], and as much more as clocks have jumped: nobody's clock is ahead of it.
pub fn latest() -> u64 {
    now() + JUMPED.load(Ordering::Relaxed)
}

/// splitmix64.
fn next() -> u64 {
    let mut mixed = STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// getrandom(2), as libraries call it.
///
/// # Safety
/// `buffer` has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(
    buffer: *mut libc::c_void,
    length: libc::size_t,
    flags: libc::c_uint,
) -> libc::ssize_t {
    if !IS_ON.load(Ordering::Relaxed) {
        // SAFETY: the caller's own arguments.
        return unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) as libc::ssize_t };
    }
    // SAFETY: the caller says that there is room.
    let bytes = unsafe { slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&next().to_le_bytes()[..chunk.len()]);
    }
    length as libc::ssize_t
}

/// clock_gettime(2), as libraries call it.
///
/// # Safety
/// `time` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> libc::c_int {
    if !IS_ON.load(Ordering::Relaxed) {
        // SAFETY: the caller's own arguments.
        return unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as libc::c_int };
    }
    let now = NOW.load(Ordering::Relaxed);
    let seconds = EPOCH_S + now / 1_000_000_000;
    // SAFETY: the caller says that it can be written.
    unsafe {
        *time = libc::timespec { tv_sec: seconds as libc::time_t, tv_nsec: (now % 1_000_000_000) as libc::c_long };
    }
    0
}
