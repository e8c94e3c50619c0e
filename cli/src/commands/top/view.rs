//! How it is drawn.

use super::scene::{Scene, Seen};
use crate::output::{Row, clean, short};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, List, ListItem, Paragraph, Row as TableRow, Table, TableState};
use std::time::{Duration, Instant};
use tenure::core::{Lease, Occupancy};

/// Cells of a bar that shows how much of a lease is left.
const BAR: u32 = 10;

/// Rows below the leases.
const BELOW: u16 = 9;

const HEADINGS: [&str; 8] = [
    "LEASE",
    "STATE",
    "LEADER",
    "TOKEN",
    "LEFT",
    "LEADS FOR",
    "STANDBYS",
    "CHANGES",
];

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
    let rows = scene.leases.iter().map(|seen| row(seen, age(scene, now)));
    let widths = [
        Constraint::Fill(3),
        Constraint::Length(13),
        Constraint::Fill(2),
        Constraint::Length(14),
        Constraint::Length(20),
        Constraint::Length(10),
        Constraint::Length(8),
        Constraint::Length(7),
    ];
    let table = Table::new(rows, widths)
        .header(TableRow::new(HEADINGS).add_modifier(Modifier::BOLD))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .style(if dim { Style::new().dim() } else { Style::new() });
    frame.render_stateful_widget(table, middle, selected);
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(2)]).areas(bottom);
    let seen = selected.selected().and_then(|index| scene.leases.get(index));
    standbys(frame, seen, left);
    changes(frame, scene, right, now);
    frame.render_widget(Line::from("q quit   ↑ ↓ choose a lease").dim(), keys);
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
        "{store}: {all} leases, {held} held, answered in {}",
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
        Cell::from(lease.token.to_string()),
        if held {
            Cell::from(left(lease, age))
        } else {
            Cell::from("-")
        },
        Cell::from(if held {
            short(lease.held_for + age)
        } else {
            "-".to_owned()
        }),
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
        Span::raw(format!(" {}", short(remaining))),
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
        let mut terminal = Terminal::new(TestBackend::new(120, 24)).unwrap();
        let mut selected = TableState::new().with_selected(0);
        terminal
            .draw(|frame| draw(frame, scene, "sqlite at /x", &mut selected, now))
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
            "1 leases, 1 held, answered in 3ms",
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
}
