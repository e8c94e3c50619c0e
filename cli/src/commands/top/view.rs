//! How it is drawn.

use super::scene::{Scene, Seen};
use crate::output::{Row, clean, short};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, List, ListItem, Paragraph, Row as TableRow, Table, TableState};
use std::ops::Range;
use std::time::{Duration, Instant};
use tenure::contract::{Lease, Occupancy};

/// Cells of a bar that shows how much of a lease is left.
const BAR: u32 = 10;

/// Rows below the leases.
const BELOW: u16 = 9;

/// A column: its heading, and how many cells it needs.
struct Column {
    heading: &'static str,
    cells: u16,
}

const fn column(heading: &'static str, cells: u16) -> Column {
    Column { heading, cells }
}

/// In their order; those of names take what is left beside the others.
const COLUMNS: [Column; 8] = [
    column("LEASE", NAME_MIN),
    column("STATE", 13),
    column("LEADER", NAME_MIN),
    column("LEFT", 11 + LEFT_WORDS),
    column("LEADS FOR", LEADS_FOR),
    column("TOKEN", 14),
    column("STANDBYS", 8),
    column("CHANGES", 7),
];

/// How many of them are shown however narrow the terminal is.
const COLUMNS_MIN: usize = 5;

/// Cells that a name needs to be told from others.
const NAME_MIN: u16 = 12;

/// Cells of durations.
const LEFT_WORDS: u16 = 9;
const LEADS_FOR: u16 = 12;

/// The widths of the columns that are shown on a terminal of this width: the last are left out before names
/// are cut.
fn widths(width: u16) -> Vec<u16> {
    let needed = |shown: &[Column]| shown.iter().map(|column| column.cells + 1).sum::<u16>() - 1;
    let shown = (COLUMNS_MIN..=COLUMNS.len())
        .rev()
        .find(|shown| needed(&COLUMNS[..*shown]) <= width);
    let shown = &COLUMNS[..shown.unwrap_or(COLUMNS_MIN)];
    let mut widths: Vec<u16> = shown.iter().map(|column| column.cells).collect();
    let left = width.saturating_sub(needed(shown));
    widths[0] += left - left * 2 / 5;
    widths[2] += left * 2 / 5;
    widths
}

/// As much of a duration as fits into so many cells, by whole words: one without its last unit is another.
fn fitting(duration: Duration, cells: u16) -> String {
    let mut told = String::new();
    for word in short(duration).split(' ') {
        if !told.is_empty() && told.len() + 1 + word.len() > usize::from(cells) {
            break;
        }
        let gap = if told.is_empty() { "" } else { " " };
        told = format!("{told}{gap}{word}");
    }
    told
}

/// Draws all of it as of `now`.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    scene: &Scene,
    store: &str,
    selected: &mut TableState,
    now: Instant,
) {
    let [top, middle, bottom, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(4),
        Constraint::Length(BELOW),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(heading(scene, store, now), top);
    let dim = scene.trouble.is_some();
    let (in_sight, mut selected_there) = window(
        scene.leases.len(),
        usize::from(middle.height.max(2)) - 1,
        selected,
    );
    let rows = scene.leases[in_sight]
        .iter()
        .map(|seen| row(seen, age(scene, now)));
    let widths = widths(middle.width);
    let headings = COLUMNS.iter().take(widths.len()).map(|column| column.heading);
    let table = Table::new(rows, widths)
        .header(TableRow::new(headings).add_modifier(Modifier::BOLD))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .style(if dim { Style::new().dim() } else { Style::new() });
    frame.render_stateful_widget(table, middle, &mut selected_there);
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(2)]).areas(bottom);
    let seen = selected.selected().and_then(|index| scene.leases.get(index));
    standbys(frame, seen, left);
    changes(frame, scene, right, now);
    frame.render_widget(Line::from("q quit   ↑ ↓ choose a lease").dim(), keys);
}

/// Which of so many leases are in sight, in so many rows, and which of these is selected: with a hundred
/// thousand of them it would take longer to make a row of each than there is until the next is drawn.
fn window(leases: usize, rows: usize, selected: &mut TableState) -> (Range<usize>, TableState) {
    let chosen = selected
        .selected()
        .map(|chosen| chosen.min(leases.saturating_sub(1)));
    let chosen = chosen.filter(|_| leases > 0);
    selected.select(chosen);
    let offset = selected.offset_mut();
    if let Some(chosen) = chosen {
        *offset = (*offset).clamp((chosen + 1).saturating_sub(rows), chosen);
    }
    *offset = (*offset).min(leases.saturating_sub(rows));
    let begin = *offset;
    let there = TableState::new().with_selected(chosen.map(|chosen| chosen - begin));
    (begin..(begin + rows).min(leases), there)
}

fn heading(scene: &Scene, store: &str, now: Instant) -> Line<'static> {
    let Some((looked, took)) = scene.look else {
        return Line::from(format!("{store}: not read yet"));
    };
    if let Some(trouble) = &scene.trouble {
        let silent = short(now.duration_since(looked));
        let text = format!(
            "{store} has told nothing for {silent}, below is how it was then: {}",
            clean(trouble)
        );
        return Line::from(text).red().bold();
    }
    let held = scene
        .leases
        .iter()
        .filter(|seen| occupancy(&seen.row) == Some(Occupancy::Held))
        .count();
    let all = scene.leases.len();
    Line::from(format!(
        "{store}: {all} {}, {held} held, answered in {}",
        if all == 1 { "lease" } else { "leases" },
        short(took)
    ))
    .bold()
}

/// How old what is shown is.
fn age(scene: &Scene, now: Instant) -> Duration {
    scene
        .look
        .map_or(Duration::ZERO, |(looked, _)| now.duration_since(looked))
}

fn occupancy(row: &Row) -> Option<Occupancy> {
    match row {
        Row::Lease(lease) => Some(lease.occupancy()),
        Row::Never(_) | Row::Unreadable { .. } => None,
    }
}

fn row(seen: &Seen, age: Duration) -> TableRow<'static> {
    let name = Cell::from(clean(seen.row.key()));
    let Row::Lease(lease) = &seen.row else {
        return TableRow::new([name, Cell::from(seen.row.state()).red()]);
    };
    let held = lease.occupancy() == Occupancy::Held;
    let state = match lease.occupancy() {
        Occupancy::Held => Cell::from(seen.row.state()).green(),
        Occupancy::Expired => Cell::from(seen.row.state()).red(),
        Occupancy::Vacant => Cell::from(seen.row.state()).yellow(),
    };
    let holder = clean(lease.holder.id.as_str());
    let standbys = seen.standbys.len();
    TableRow::new([
        name,
        state,
        if held {
            Cell::from(holder)
        } else {
            Cell::from(format!("({holder})")).dim()
        },
        if held {
            Cell::from(left(lease, age))
        } else {
            Cell::from("-")
        },
        Cell::from(if held {
            fitting(lease.held_for + age, LEADS_FOR)
        } else {
            "-".to_owned()
        }),
        Cell::from(lease.token.to_string()),
        Cell::from(if standbys == 0 {
            "-".to_owned()
        } else {
            standbys.to_string()
        }),
        Cell::from(seen.changes.to_string()),
    ])
}

/// A bar that shrinks between two looks, as the lease does unless it is renewed.
fn left(lease: &Lease, age: Duration) -> Line<'static> {
    let remaining = lease.remaining.saturating_sub(age);
    let ttl = lease.ttl.duration();
    let cells = (remaining * BAR)
        .as_millis()
        .div_ceil(ttl.as_millis().max(1))
        .min(u128::from(BAR));
    let cells = usize::try_from(cells).unwrap_or_default();
    let colour = match remaining {
        much if much * 2 >= ttl => Color::Green,
        some if some * 5 >= ttl => Color::Yellow,
        _ => Color::Red,
    };
    let empty = usize::try_from(BAR).unwrap_or_default() - cells;
    Line::from(vec![
        Span::styled("█".repeat(cells), colour),
        Span::styled("░".repeat(empty), Style::new().dim()),
        Span::raw(format!(" {}", fitting(remaining, LEFT_WORDS))),
    ])
}

fn standbys(frame: &mut Frame<'_>, seen: Option<&Seen>, area: Rect) {
    let Some(seen) = seen else {
        return frame.render_widget(Block::bordered().title("Standbys"), area);
    };
    let block = Block::bordered().title(format!("Standbys of {}", clean(seen.row.key())));
    if seen.standbys.is_empty() {
        let text = "none in order (candidates with --priority);\nothers who wait leave no record";
        return frame.render_widget(Paragraph::new(text).dim().block(block), area);
    }
    let items = seen.standbys.iter().map(|standby| {
        let called = if standby.is_called() { ", called" } else { "" };
        let text = format!(
            "{}  priority {}{called}, waits for {}",
            clean(standby.candidate().as_str()),
            standby.priority,
            short(standby.place.held_for)
        );
        ListItem::new(text)
    });
    frame.render_widget(List::new(items).block(block), area);
}

fn changes(frame: &mut Frame<'_>, scene: &Scene, area: Rect, now: Instant) {
    let items = scene.changes.iter().map(|change| {
        let ago = format!("{:>8} ago  ", short(now.duration_since(change.at)));
        ListItem::new(Line::from(vec![
            Span::raw(ago).dim(),
            Span::raw(format!("{}: ", clean(&change.lease))).bold(),
            Span::raw(clean(&change.what)),
        ]))
    });
    let block = Block::bordered().title("Changes");
    frame.render_widget(List::new(items).block(block), area);
}

#[cfg(test)]
mod tests {
    use super::super::scene::lease;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(scene: &Scene, now: Instant) -> String {
        drawn_on(120, scene, now, &mut TableState::new().with_selected(0))
    }

    fn drawn_on(columns: u16, scene: &Scene, now: Instant, selected: &mut TableState) -> String {
        let mut terminal = Terminal::new(TestBackend::new(columns, 24)).unwrap();
        terminal
            .draw(|frame| draw(frame, scene, "sqlite at /x", selected, now))
            .unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_lease_shrinks_between_two_looks_and_a_silent_store_is_said_first() {
        let began = Instant::now();
        let mut scene = Scene::default();
        assert!(drawn(&scene, began).contains("sqlite at /x: not read yet"));
        let place = lease("job/candidates/7/host-2", "host-2", 2);
        let rows = [lease("job", "host-1", 1), place].map(|lease| Row::Lease(Box::new(lease)));
        scene.take_in(rows.to_vec(), began, began + Duration::from_millis(3));
        let looked = began + Duration::from_millis(3);
        let at_once = drawn(&scene, looked);
        for expected in [
            "1 lease, 1 held, answered in 3ms",
            "host-1",
            "████████░░ 8s",
            "host-2  priority 7",
        ] {
            assert!(at_once.contains(expected), "{expected}: {at_once}");
        }
        assert!(drawn(&scene, looked + Duration::from_secs(6)).contains("██░░░░░░░░ 2s"));
        scene.trouble = Some("no answer".to_owned());
        let silent = drawn(&scene, looked + Duration::from_secs(30));
        assert!(
            silent.contains("has told nothing for 30s, below is how it was then: no answer"),
            "{silent}"
        );
        assert!(silent.contains("░░░░░░░░░░ 0"), "{silent}");
    }

    #[test]
    fn who_leads_what_is_seen_on_a_terminal_of_eighty_columns() {
        let (mut scene, now) = (Scene::default(), Instant::now());
        let held = Lease {
            held_for: Duration::from_secs(12 * 3600 + 34 * 60 + 56),
            ..lease("settlement", "host-1-eu", 1)
        };
        scene.take_in(vec![Row::Lease(Box::new(held))], now, now);
        for (columns, has_more) in [(80, false), (120, true)] {
            let drawn = drawn_on(columns, &scene, now, &mut TableState::new());
            for expected in ["settlement", "host-1-eu", "held", "████████░░ 8s", "12h 34m"]
            {
                assert!(drawn.contains(expected), "{expected}: {drawn}");
            }
            assert_eq!(drawn.contains("STANDBYS"), has_more, "{drawn}");
        }
    }

    #[test]
    fn a_duration_that_does_not_fit_loses_whole_units() {
        let long = Duration::from_secs(12 * 3600 + 34 * 60 + 56);
        for (cells, shown) in [(11, "12h 34m 56s"), (10, "12h 34m"), (6, "12h"), (1, "12h")] {
            assert_eq!(fitting(long, cells), shown);
        }
    }

    #[test]
    fn the_selected_of_many_leases_is_in_sight_and_stays_within_them() {
        let (mut scene, now) = (Scene::default(), Instant::now());
        let leases = (1..=100).map(|number| lease(&format!("lease-{number:03}"), "host", number));
        scene.take_in(
            leases.map(|lease| Row::Lease(Box::new(lease))).collect(),
            now,
            now,
        );
        let mut selected = TableState::new().with_selected(0);
        let shows = |selected: &mut TableState, first: &str, last: &str| {
            let drawn = drawn_on(80, &scene, now, selected);
            let rows: Vec<&str> = drawn
                .lines()
                .filter(|line| line.contains("lease-") && line.contains("held"))
                .collect();
            assert!(
                rows[0].contains(first) && rows.last().unwrap().contains(last),
                "{drawn}"
            );
        };
        shows(&mut selected, "lease-001", "lease-012");
        (0..12).for_each(|_| selected.select_next());
        shows(&mut selected, "lease-002", "lease-013");
        (0..5).for_each(|_| selected.select_previous());
        shows(&mut selected, "lease-002", "lease-013");
        (0..500).for_each(|_| selected.select_next());
        shows(&mut selected, "lease-089", "lease-100");
        assert_eq!(selected.selected(), Some(99));
    }
}
