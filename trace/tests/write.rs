//! A trace on a disk: private, never overwritten, bounded, and over at the first error.

use crate::common::{header, lines, steps, take_over};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use tenure_core::{Actions, Input, Moment, Note};
use tenure_trace::{
    Header, LINE_BYTES_MAX, TRACE_BYTES_MAX, TraceFault, Verdict, Writer, create, open, replay_file,
    step_line,
};

/// A path that is gone when the test is over.
struct Scratch(PathBuf);

impl Scratch {
    fn new(label: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tenure-trace-{}-{label}.jsonl", std::process::id()));
        let _ = fs::remove_file(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_file_is_created_for_its_owner_alone_and_never_overwritten() {
    let scratch = Scratch::new("create");
    let file = create(&scratch.0).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(create(&scratch.0).unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[test]
fn a_header_that_no_reader_takes_is_not_written() {
    for store in ["x".repeat(101), "toy\n".to_owned()] {
        let unfit = Header { store, ..header(1) };
        let error = Writer::new(Vec::new(), &unfit).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
}

#[test]
fn a_file_replays() {
    let scratch = Scratch::new("replay");
    fs::write(&scratch.0, take_over().second).unwrap();
    assert_eq!(replay_file(&scratch.0).unwrap().verdict, Verdict::Same);
    let missing = open(scratch.0.with_extension("missing")).unwrap_err();
    assert_eq!(missing.line, 0);
    assert!(matches!(missing.fault, TraceFault::Unreadable(_)), "{missing}");
}

#[test]
fn a_full_disk_ends_a_trace_for_good() {
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    assert_eq!(
        Writer::new(full(), &header(1)).unwrap_err().kind(),
        ErrorKind::StorageFull
    );
    let mut writer = Writer::new(
        Filling {
            room: 2000,
            out: Vec::new(),
        },
        &header(1),
    )
    .unwrap();
    let steps = steps(&take_over().first);
    let mut outcomes = steps
        .iter()
        .map(|step| writer.step(step.at, &step.input, &step.actions));
    let error = outcomes.find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert!(
        outcomes.all(|outcome| outcome.is_err()),
        "a line after one that is missing"
    );
    drop(outcomes);
    let left = writer.into_inner().out;
    let replayed = tenure_trace::replay(&mut crate::common::reader(&left)).unwrap();
    assert_eq!(replayed.verdict, Verdict::Same);
    assert_eq!(
        replayed.truncated,
        Some(lines(&left).len() as u64),
        "the line that did not fit"
    );
}

/// A disk that is full after so many bytes, and has room again afterwards.
struct Filling {
    room: usize,
    out: Vec<u8>,
}

impl Write for Filling {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let fits = bytes.len().min(self.room);
        if fits == 0 {
            self.room = usize::MAX;
            return Err(ErrorKind::StorageFull.into());
        }
        self.room -= fits;
        self.out.extend(&bytes[..fits]);
        Ok(fits)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_line_that_no_reader_takes_is_not_written() {
    let scratch = Scratch::new("long");
    let mut writer = Writer::new(create(&scratch.0).unwrap(), &header(1)).unwrap();
    let campaign = || {
        Input::Command(tenure_core::Command::Campaign {
            name: crate::common::name(),
            note: Note::default(),
            progress_within: None,
            max_hold: None,
        })
    };
    let long = Input::Answer {
        request: tenure_core::RequestId::from_number(9),
        reply: tenure_core::Reply::Looked(Err(tenure_core::StoreError::unknown(
            tenure_core::Fault::Internal,
            "x".repeat(LINE_BYTES_MAX),
        ))),
    };
    let actions = Actions::default();
    assert!(step_line(Moment::ZERO, &long, &actions).len() > LINE_BYTES_MAX);
    let error = writer.step(Moment::ZERO, &long, &actions).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    assert!(writer.step(Moment::ZERO, &campaign(), &actions).is_err());
    assert_eq!(lines(&fs::read(&scratch.0).unwrap()).len(), 1, "the header alone");
}

/// A forgotten one does not fill the disk.
#[test]
fn a_trace_ends_before_it_is_longer_than_a_reader_takes() {
    let line = "x".repeat(LINE_BYTES_MAX - 1) + "\n";
    let mut writer = Writer::with_line(std::io::sink(), &line).unwrap();
    for _line in 1..TRACE_BYTES_MAX / line.len() as u64 {
        writer.write_line(&line).unwrap();
    }
    let error = writer.write_line("\n").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FileTooLarge, "{error}");
    assert!(writer.write_line("\n").is_err());
}

#[test]
fn each_line_is_on_the_disk_when_it_was_written() {
    let scratch = Scratch::new("flushed");
    let mut writer = Writer::new(create(&scratch.0).unwrap(), &header(1)).unwrap();
    for (index, step) in steps(&take_over().first).iter().enumerate() {
        writer.step(step.at, &step.input, &step.actions).unwrap();
        let written = fs::read(&scratch.0).unwrap();
        assert_eq!(lines(&written).len(), index + 2);
        assert!(written.ends_with(b"\n"));
    }
    drop::<Writer<File>>(writer);
}
