//! The process ends in good order, or begins another program: what was not written yet is.

use crate::start::{Inside, is_on, is_vforked};
use crate::{faults, programs, refused, sockets, unseen};
use stepscope_recorder::set_own_metadata;

/// Called by the loader when the process ends by `exit`.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: unsafe extern "C" fn() = at_end;

#[cfg_attr(test, expect(dead_code, reason = "tests are not recorded"))]
unsafe extern "C" fn at_end() {
    finish();
}

/// What comes afterwards is still recorded, but for what the helper thread would have written.
pub(crate) fn finish() {
    if is_on()
        && !is_vforked()
        && let Some(_inside) = Inside::enter()
    {
        programs::say();
        if faults::finish() {
            sockets::say();
            refused::say();
            set_own_metadata(unseen::KEY, &unseen::of_system());
        }
    }
}
