//! Memory of this process that may be freed, or changed, while it is read.

use std::mem::MaybeUninit;

/// Ranges of one call at most, as the system has it.
const MAX_RANGES: usize = 1024;

/// The `size` bytes at an address; none if not all of them are there.
pub(super) fn read<T: bytemuck::Pod>(address: usize) -> Option<T> {
    let mut value = MaybeUninit::<T>::uninit();
    let local = libc::iovec { iov_base: value.as_mut_ptr().cast(), iov_len: size_of::<T>() };
    copy(local, &[range(address, size_of::<T>())])?;
    // SAFETY: all of it was written, and any bytes are a value.
    Some(unsafe { value.assume_init() })
}

/// As [`read`], of bytes.
pub(super) fn read_bytes(address: usize, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
    copy(local, &[range(address, length)])?;
    Some(bytes)
}

/// The words at these addresses, read at once.
pub(super) fn read_words(addresses: &[usize]) -> Option<Vec<usize>> {
    let mut words = vec![0; addresses.len()];
    for (words, addresses) in words.chunks_mut(MAX_RANGES).zip(addresses.chunks(MAX_RANGES)) {
        let local =
            libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(words) };
        let ranges: Vec<_> = addresses.iter().map(|at| range(*at, size_of::<usize>())).collect();
        copy(local, &ranges)?;
    }
    Some(words)
}

fn range(address: usize, length: usize) -> libc::iovec {
    libc::iovec { iov_base: std::ptr::with_exposed_provenance_mut(address), iov_len: length }
}

fn copy(local: libc::iovec, remote: &[libc::iovec]) -> Option<()> {
    // SAFETY: the local range is the caller's, to be written; the system checks the others.
    let copied = unsafe {
        libc::process_vm_readv(
            libc::getpid(),
            &local,
            1,
            remote.as_ptr(),
            remote.len() as libc::c_ulong,
            0,
        )
    };
    (usize::try_from(copied) == Ok(local.iov_len)).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_refused() {
        let there = [3_usize, 4, 5];
        let at = |n: usize| (&raw const there[n]).expose_provenance();
        assert_eq!(read::<usize>(at(1)), Some(4));
        assert_eq!(read_words(&[at(2), at(0)]), Some(vec![5, 3]));
        assert_eq!(read_bytes(at(0), 2), Some(3_usize.to_ne_bytes()[..2].to_vec()));
        assert_eq!(read::<usize>(8), None);
        assert_eq!(read_words(&[at(0), 8]), None);
        assert_eq!(read_words(&vec![at(1); 3000]), Some(vec![4; 3000]));
    }
}
