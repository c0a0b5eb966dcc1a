//! Device profiles: `profile.toml`, a zero byte, then `models.bin.zst`.
//!
//! Fingerprints and compression would hide the reader of the models from the fuzzer. If the second part begins with a
//! length, it is therefore treated as the plain models, and sealed like the writer does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steptime_cost::device::DeviceProfile;
use steptime_fuzz::limited;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let (header, models) = (parts.next().unwrap_or_default(), parts.next());
    let Ok(header) = std::str::from_utf8(header) else { return };
    let sealed =
        models.map(|models| if models.starts_with(b"STPM") { models.to_vec() } else { seal(header, models) });
    limited(bytes, |_| {
        let Ok(profile) = DeviceProfile::from_parts(header, sealed.as_deref()) else { return };
        let (text, models) = profile.to_parts().expect("what was read can be written");
        DeviceProfile::from_parts(&text, models.as_deref()).expect("what was written can be read");
    });
});

/// The file of models: for each family its length in two bytes, then its bytes.
fn seal(header: &str, mut models: &[u8]) -> Vec<u8> {
    let mut families = Vec::new();
    while let Some((length, rest)) = models.split_first_chunk::<2>() {
        let (family, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
        families.push(family);
        models = rest;
    }
    let mut body = (families.len() as u32).to_le_bytes().to_vec();
    for family in families {
        let packed = zstd::bulk::compress(family, 1).expect("compressed");
        body.extend((family.len() as u32).to_le_bytes());
        body.extend((packed.len() as u32).to_le_bytes());
        body.extend(packed);
    }
    let version = 3u32;
    let header = header.replace("\r\n", "\n");
    [&b"STPM"[..], &version.to_le_bytes(), &fingerprint(header.as_bytes()), &fingerprint(&body), &body]
        .concat()
}

/// Fingerprint that the reader expects: FNV-1a over words of eight bytes.
fn fingerprint(bytes: &[u8]) -> [u8; 8] {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]).map(|word| u64::from_le_bytes(*word)).chain([bytes.len() as u64]);
    let hash = words.fold(0xcbf2_9ce4_8422_2325, |hash: u64, word| {
        let mixed = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        mixed ^ (mixed >> 29)
    });
    hash.to_le_bytes()
}
