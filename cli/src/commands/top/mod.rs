//! `tenure top`: a live view of every lease, for people who would rather look than read.

mod scene;
mod view;

use super::look::{Chosen, Viewed};
use crate::arguments::{Selection, TopArguments};
use crate::exit::{Code, Failure};
use crate::supervise::ignored_at_start;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::widgets::TableState;
use scene::Scene;
use std::future::poll_fn;
use std::io::IsTerminal;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::sleep;

/// How often it is drawn: what remains is counted down between two looks.
const DRAW_EVERY: Duration = Duration::from_millis(250);

/// Keys that may wait.
const KEYS_WAITING: usize = 16;

/// Shows every lease until a key ends it.
pub(crate) async fn top(arguments: &TopArguments, store: Option<&str>) -> Result<u8, Failure> {
    if !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
        return Err(Failure::new(
            Code::Usage,
            "top needs a terminal; for programs there are tenure status --output json, and tenure watch",
        ));
    }
    let viewed = Viewed::open(store).await?;
    let shown = viewed.place();
    let mut looks = looks(viewed, store.map(str::to_owned), arguments);
    let mut keys = keys();
    let no_signal = |error| Failure::new(Code::Internal, format!("cannot wait for signals: {error}"));
    let mut ends = Ends::take_in().map_err(no_signal)?;
    let no_terminal = |error| Failure::new(Code::Internal, format!("cannot draw on this terminal: {error}"));
    let mut terminal = ratatui::try_init().map_err(no_terminal)?;
    let (mut scene, mut selected) = (Scene::default(), TableState::new().with_selected(0));
    let outcome = loop {
        let now = Instant::now();
        let drawn = terminal.draw(|frame| view::draw(frame, &scene, &shown, &mut selected, now));
        if let Err(error) = drawn {
            break Err(no_terminal(error));
        }
        tokio::select! {
            Some(key) = keys.recv() => match key {
                Key::Quit => break Ok(0),
                Key::Up => selected.select_previous(),
                Key::Down => selected.select_next(),
                Key::Redraw => {}
            },
            Some(look) = looks.recv() => match look {
                Ok((rows, sent)) => {
                    scene.take_in(rows, sent, Instant::now());
                    // An empty table has forgotten what was chosen.
                    selected.select(selected.selected().or(Some(0)));
                }
                Err(why) => scene.trouble = Some(why),
            },
            signal = ends.next() => break Ok(crate::exit::of_signal(signal)),
            () = sleep(DRAW_EVERY) => {}
        }
    };
    ratatui::restore();
    outcome
}

/// The signals that end it: one that ended the process at once would leave the terminal as it is drawn on.
struct Ends(Vec<(i32, Signal)>);

impl Ends {
    /// Those that were ignored when this process was started stay so.
    fn take_in() -> std::io::Result<Self> {
        let ending = [libc::SIGTERM, libc::SIGINT, libc::SIGQUIT, libc::SIGHUP].into_iter();
        let ignored = ignored_at_start();
        let heard = ending.filter(|number| ignored & (1 << (number - 1)) == 0);
        let heard = heard.map(|number| Ok((number, signal(SignalKind::from_raw(number))?)));
        heard.collect::<std::io::Result<_>>().map(Self)
    }

    /// The next one. May be dropped and called again without losing one.
    async fn next(&mut self) -> i32 {
        poll_fn(|context| {
            for (number, signal) in &mut self.0 {
                if signal.poll_recv(context).is_ready() {
                    return Poll::Ready(*number);
                }
            }
            Poll::Pending
        })
        .await
    }
}

type Look = Result<(crate::output::Rows, Instant), String>;

/// Looks again and again, whether or not it is drawn.
fn looks(mut viewed: Viewed, store: Option<String>, arguments: &TopArguments) -> mpsc::Receiver<Look> {
    let (sender, looks) = mpsc::channel(1);
    let every = arguments.every;
    let chosen = Chosen::new(Selection::Prefix {
        prefix: arguments.prefix.clone().unwrap_or_default(),
        housekeeping: true,
    });
    tokio::spawn(async move {
        let Ok(chosen) = chosen else { return };
        loop {
            let sent = Instant::now();
            // Each of its requests is waited for by itself: a store with many leases may take long, and
            // answers all the while.
            let look = async {
                if viewed.store.is_none() {
                    viewed = Viewed::open(store.as_deref()).await?;
                }
                chosen.read_in(&viewed).await
            };
            let look = look.await;
            let look = look.map(|rows| (rows, sent)).map_err(|failure| failure.message);
            if sender.send(look).await.is_err() {
                return;
            }
            sleep(every).await;
        }
    });
    looks
}

enum Key {
    Quit,
    Up,
    Down,
    /// The terminal has another size.
    Redraw,
}

/// What is typed. The thread that reads it ends with the process.
fn keys() -> mpsc::Receiver<Key> {
    let (sender, keys) = mpsc::channel(KEYS_WAITING);
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            let key = match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => key_of(key),
                Event::Resize(..) => Some(Key::Redraw),
                _ => None,
            };
            if let Some(key) = key
                && sender.blocking_send(key).is_err()
            {
                return;
            }
        }
    });
    keys
}

fn key_of(key: KeyEvent) -> Option<Key> {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Quit),
        KeyCode::Up | KeyCode::Char('k') => Some(Key::Up),
        KeyCode::Down | KeyCode::Char('j') => Some(Key::Down),
        _ => None,
    }
}
