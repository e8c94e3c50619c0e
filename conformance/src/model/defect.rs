macro_rules! defects {
    ($($(#[$doc:meta])* $defect:ident => $case:ident,)*) => {
        /// A way in which a store can break the contract, planted to prove that the suite would notice.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Defect {
            $($(#[$doc])* $defect,)*
        }

        impl Defect {
            /// Every defect.
            pub const ALL: &[Self] = &[$(Self::$defect,)*];

            /// The name of the case that is there to catch it. Others may, too.
            #[must_use]
            pub fn caught_by(self) -> &'static str {
                match self {
                    $(Self::$defect => stringify!($case),)*
                }
            }
        }
    };
}

defects! {
    // Taking a lease.
    /// A repeated request begins a new term.
    SameAttemptGetsNewToken => same_attempt_gets_the_same_token_again,
    /// A repeated request gets its token, but the lease ends when it would have.
    SameAttemptDoesNotExtend => same_attempt_extends_the_lease,
    /// A repeated request extends the lease only where it asks for another ttl.
    SameTtlDoesNotExtend => same_attempt_extends_the_lease,
    /// A repeated request is not told that it is one.
    AgainIsNotSaid => same_attempt_gets_the_same_token_again,
    /// The first term is said to have been granted before.
    FirstGrantSaysAgain => first_acquire_is_granted,
    /// The note is not kept.
    NotesAreDropped => grant_stands_in_the_record,
    /// A long ttl is cut in the record, and said to be what was asked for.
    LongTtlCutSilently => granted_ttl_is_reported,
    /// A lease with a long ttl ends before that, whatever its record says.
    LongExpiryCut => granted_ttl_is_reported,
    /// A repeated request for a long ttl leaves a lease that ends before that.
    LongExpiryCutAgain => granted_ttl_is_reported,
    /// The longest ttl is refused.
    LongestTtlRefused => ends_of_the_ttl_range_are_granted,
    /// A later attempt of the holder waits for the earlier one to expire.
    LaterAttemptWaits => later_attempt_takes_over_at_once,
    /// An earlier attempt takes the lease from a later one.
    EarlierAttemptTakesOver => earlier_attempt_is_superseded_while_held,
    /// The released attempt, arriving late, takes the lease again.
    LateDuplicateMakesGhost => same_attempt_is_superseded_once_released,
    /// An attempt earlier than the released one, arriving late, takes the lease.
    VacantEarlierAttemptGranted => earlier_attempt_is_superseded_while_vacant,
    /// An attempt earlier than the expired one, arriving late, takes the lease.
    ExpiredEarlierAttemptGranted => earlier_attempt_is_superseded_after_expiry,
    /// An attempt is compared with that of another process.
    AttemptsComparedAcrossProcesses => attempts_of_other_incarnations_are_not_compared,
    /// The label owns the lease, not the process.
    LabelIsTheOwner => same_id_with_another_incarnation_is_another_candidate,
    /// The answer to a loser shows the loser as the holder.
    HeldShowsTheAsker => second_candidate_is_told_who_holds,
    /// A loser leaves its note in the record.
    LosersWrite => losing_request_writes_nothing,
    /// Terms are not counted.
    TermsNotCounted => terms_are_counted,
    /// The term before is forgotten.
    PredecessorForgotten => predecessor_that_released_is_reported,
    /// A term that expired is said to have been released.
    PredecessorEndGuessed => predecessor_that_expired_is_reported,
    /// Decided in one step, written in another.
    DecidedBeforeWritten => one_of_sixteen_wins_a_new_lease,
    /// Whoever loses a race gets the database's own error.
    RaceIsAnError => one_of_sixteen_wins_a_new_lease,
    /// The ttl is taken as it comes.
    TtlUnchecked => acquire_outside_the_ttl_range_is_refused,
    /// A refused renewal spoils its whole batch.
    TtlRefusesTheBatch => renewal_outside_the_ttl_range_is_refused,

    // Tokens.
    /// The term after a release has the token of the one before.
    TokenRepeats => release_vacates_and_the_next_is_granted_at_once,
    /// The term after a release has the token 1.
    TokenStartsAgain => tokens_rise_over_two_hundred_terms,
    /// The token only counts: a clean-up sets it back.
    TokenForgetsClock => token_rises_after_a_clean_up,
    /// After the last token comes a small one.
    LastTokenWraps => last_token_has_no_successor,

    // Expiry.
    /// A lease is taken in the last fifth of its ttl.
    ExpiryJudgedEarly => take_over_happens_after_the_ttl_and_not_before,
    /// An expired lease is withheld for another second.
    ExpiryJudgedLate => expired_lease_is_granted_at_once,
    /// The asker's ttl decides when the holder's lease has expired.
    AskersTtlCounts => short_ttl_of_the_asker_does_not_shorten_the_lease,

    // Renewing.
    /// A renewal revives an expired lease.
    RenewRevivesExpired => renewal_never_revives_an_expired_lease,
    /// A renewal revives a released lease.
    RenewRevivesReleased => renewal_never_revives_a_released_lease,
    /// Any process may renew.
    RenewIgnoresIncarnation => renewal_by_another_incarnation_is_lost,
    /// Any token may renew.
    RenewIgnoresToken => renewal_with_another_token_is_lost,
    /// Any attempt may renew.
    RenewIgnoresAttempt => renewal_with_another_attempt_is_lost,
    /// A renewal is answered, and extends nothing.
    RenewDoesNotExtend => renewal_extends_the_lease,
    /// A renewal with a long ttl leaves a lease that ends before that.
    LongRenewalCut => granted_ttl_is_reported,
    /// A renewal with a shorter ttl leaves the expiry where it was.
    RenewOnlyLengthens => renewal_with_a_shorter_ttl_counts_from_now,
    /// A renewal without a record makes one.
    RenewMakesRecord => renewal_of_a_missing_lease_is_lost,
    /// A renewal raises the token.
    RenewRaisesToken => renewal_changes_neither_holder_nor_token,
    /// A lost renewal does not say what is there now.
    LostSaysNothing => renewal_after_a_take_over_names_the_new_holder,
    /// A lost renewal is noted in the record.
    LostRenewalWrites => renewal_with_another_token_is_lost,

    // Batches.
    /// Each verdict is given to the neighbour.
    BatchShifted => renewals_are_judged_one_by_one,
    /// After the first loss, everything is called lost.
    BatchStopsAtFirstLoss => renewals_are_judged_one_by_one,
    /// A record that cannot be understood has no verdict.
    BatchDropsUnreadable => renewals_are_judged_one_by_one,
    /// What is beyond the hundredth is answered, and not done.
    BatchCutAtHundred => large_batch_of_releases,
    /// In a batch, a renewal revives an expired lease.
    BatchRevivesExpired => renewals_are_judged_one_by_one,
    /// In a batch, a renewal revives a released lease.
    BatchRevivesReleased => renewals_are_judged_one_by_one,
    /// In a batch, any process may renew.
    BatchIgnoresIncarnation => renewals_are_judged_one_by_one,
    /// In a batch, any token may renew.
    BatchIgnoresToken => renewals_are_judged_one_by_one,
    /// In a batch, any attempt may renew.
    BatchIgnoresAttempt => renewals_are_judged_one_by_one,
    /// In a batch, a renewal without a record makes one.
    BatchMakesRecord => renewals_are_judged_one_by_one,
    /// In a batch, a lost renewal is noted in the record.
    BatchWritesLost => renewals_are_judged_one_by_one,
    /// In a batch, any process may release.
    BatchReleaseIgnoresIncarnation => releases_are_judged_one_by_one,
    /// In a batch, any token may release.
    BatchReleaseIgnoresToken => releases_are_judged_one_by_one,
    /// In a batch, any attempt may release.
    BatchReleaseIgnoresAttempt => releases_are_judged_one_by_one,
    /// In a batch, a release forgets by which attempt the term was taken.
    BatchReleaseForgetsAttempt => releases_are_judged_one_by_one,
    /// In a batch, a release deletes the record.
    BatchReleaseDeletesRecord => releases_are_judged_one_by_one,
    /// In a batch, a second release is refused.
    BatchReleaseOnlyOnce => releases_are_judged_one_by_one,
    /// In a batch, a term that has expired cannot be released.
    BatchReleaseRefusesExpired => releases_are_judged_one_by_one,
    /// In a batch, whatever is vacant is called the caller's.
    BatchReleaseTakesAnyVacancy => releases_are_judged_one_by_one,
    /// From the hundredth on, any attempt may renew.
    BatchTailIgnoresAttempt => renewals_of_a_large_batch_are_judged_one_by_one,
    /// From the hundredth on, any attempt may release.
    BatchTailReleaseIgnoresAttempt => releases_of_a_large_batch_are_judged_one_by_one,
    /// A batch is done in parts, and the verdicts of the first come last.
    BatchPartsChangePlaces => releases_of_a_large_batch_are_judged_one_by_one,
    /// A batch is done in parts, and each gets the verdicts of the first.
    BatchPartsShareVerdicts => renewals_of_a_large_batch_are_judged_one_by_one,
    /// Nothing asked is answered all the same.
    EmptyBatchIsAnswered => empty_batch_has_no_answers,
    /// In a batch, a renewal is answered, and its lease ends before that.
    BatchCutsExpiry => large_batch_of_renewals,
    /// All leases of a batch get the ttl of the first.
    BatchHasOneTtl => large_batch_of_renewals,

    // Releasing.
    /// Any process may release.
    ReleaseIgnoresIncarnation => release_by_another_incarnation_changes_nothing,
    /// Any token may release.
    ReleaseIgnoresToken => release_with_another_token_changes_nothing,
    /// Any attempt may release.
    ReleaseIgnoresAttempt => release_with_another_attempt_changes_nothing,
    /// Only the process is compared: an old release ends its later term.
    ReleaseIgnoresTerm => late_duplicate_of_a_release_never_ends_a_later_term,
    /// A release deletes the record.
    ReleaseDeletesRecord => release_keeps_the_record,
    /// A release forgets by which attempt the term was taken.
    ReleaseForgetsAttempt => release_keeps_the_record,
    /// A second release is refused.
    ReleaseOnlyOnce => release_is_idempotent,
    /// A term that has expired cannot be released.
    ReleaseRefusesExpired => expired_unclaimed_term_can_be_released,
    /// A release without a record makes one.
    ReleaseMakesRecord => release_of_a_missing_lease_makes_no_record,
    /// Whatever is vacant is called the caller's.
    ReleaseTakesAnyVacancy => release_of_an_older_term_of_a_vacant_lease_is_not_yours,

    // Asking.
    /// Whoever holds the lease is asked.
    AskIgnoresToken => asking_another_term_changes_nothing,
    /// Asking counts as a renewal.
    AskExtends => asking_changes_nothing_else,
    /// An expired holder is asked.
    AskTakesExpired => asking_an_expired_lease_changes_nothing,
    /// The last holder of a vacant lease is asked.
    AskTakesVacant => asking_a_vacant_lease_changes_nothing,
    /// A wish without a record makes one.
    AskMakesRecord => asking_a_missing_lease_makes_no_record,
    /// The next term inherits the wish.
    WishSurvivesTerm => wish_is_gone_after_a_release,
    /// The holder never learns of the wish.
    WishNotTold => wish_reaches_the_holder_with_its_renewal,
    /// A renewal takes the wish away.
    WishToldOnce => wish_reaches_the_holder_with_its_renewal,

    // Two steps, with room for others in between.
    /// A wish writes back the whole record that it has read.
    AskWritesBack => wishes_and_end_of_a_term_at_once_leave_the_next_alone,
    /// A wish that was meant for the term that was read is left for whichever there is.
    AskWritesByName => wishes_and_end_of_a_term_at_once_leave_the_next_alone,
    /// A renewal writes back the whole record that it has read.
    RenewWritesBack => wishes_and_renewal_at_once_both_count,
    /// A renewal of the term that was read extends whichever there is.
    RenewWritesByName => renewals_and_later_attempt_at_once_leave_the_new_term_alone,
    /// In a batch, a renewal of the term that was read extends whichever there is.
    BatchRenewWritesByName => renewals_and_later_attempt_at_once_leave_the_new_term_alone,
    /// A release writes back the whole record that it has read.
    ReleaseWritesBack => releases_and_later_attempt_at_once_leave_the_new_term_alone,
    /// A release of the term that was read ends whichever there is.
    ReleaseWritesByName => releases_and_later_attempt_at_once_leave_the_new_term_alone,
    /// In a batch, a release of the term that was read ends whichever there is.
    BatchReleaseWritesByName => releases_and_later_attempt_at_once_leave_the_new_term_alone,

    // Reading.
    /// A client reads what it read a moment ago.
    ReadsAreCached => reads_see_the_latest_write,
    /// Reading notes itself in the record.
    ReadsWrite => reading_writes_nothing,
    /// An expired lease is called missing.
    ExpiredIsMissing => expired_record_stays,
    /// Reading what is missing makes a record.
    ReadsMakeRecord => missing_lease_is_none,
    /// The remaining time is always the whole ttl.
    RemainingNeverFalls => remaining_time_falls,
    /// The age of the term is counted from its last renewal.
    TermAgeStartsAgain => time_since_the_term_began_is_told,
    /// The age of the renewal is counted from the beginning of the term.
    RenewalAgeIsTermAge => time_since_the_last_renewal_is_told,
    /// Names are compared without regard to case.
    NamesFoldCase => names_that_look_alike_are_different_leases,
    /// Notes end after 255 bytes.
    NotesAreCut => longest_texts_fit,
    /// Notes end at a NUL.
    NotesEndAtNul => hostile_notes_come_back_as_they_were,
    /// A record whose note is longer than Tenure's own cannot be understood.
    LongNoteIsUnreadable => note_of_another_hand_that_is_too_long_ends_nobodys_term,
    /// Leases are listed without regard to case.
    ListFoldsCase => leases_are_listed_in_the_order_of_their_bytes,
    /// Leases are listed in the order of UTF-16.
    ListInUtf16Order => leases_are_listed_in_the_order_of_their_bytes,
    /// A prefix is a pattern of SQL's `LIKE`.
    ListPrefixIsPattern => prefix_is_text_and_no_pattern,
    /// Every page but the first lacks its first record.
    ListSkipsBetweenPages => pages_join_without_loss_or_duplicate,
    /// A full page promises another, always.
    ListPromisesAnotherPage => last_page_says_so,
    /// The empty prefix is the prefix of nothing.
    ListOfEverythingIsEmpty => empty_prefix_lists_everything,
    /// Any limit is taken.
    ListTakesAnyLimit => limit_outside_its_range_is_refused,
    /// Vacant leases are not listed.
    ListHidesVacant => leases_are_listed_whatever_their_state,
    /// Who asks what is held is told of nothing that is.
    ListOfHeldHidesHeld => what_is_held_is_listed_as_held,

    // Records that cannot be understood.
    /// A request to take the lease overwrites the record.
    UnreadableOverwritten => negative_token_is_left_alone,
    /// A release removes the record.
    UnreadableRemoved => record_of_another_application_is_left_alone,
    /// Reading says that there is no record.
    UnreadableIsMissing => huge_token_is_left_alone,
    /// The error does not say which lease.
    UnreadableIsNameless => missing_token_is_left_alone,
    /// Any expiry is believed.
    FarOffExpiryIsBelieved => expiry_far_off_is_left_alone,
    /// The holder's own renewal fails of it.
    FarOffExpiryIsNotRenewed => expiry_far_off_is_mended_by_the_holders_renewal,
    /// A renewal never brings the expiry nearer.
    FarOffExpiryStays => expiry_far_off_is_mended_by_the_holders_renewal,
    /// The holder's own release fails of it.
    FarOffExpiryIsNotReleased => expiry_far_off_keeps_no_holder_from_giving_back,
    /// A process that tries anew fails of its own earlier term.
    FarOffExpiryKeepsItsHolderOut => expiry_far_off_keeps_no_later_attempt_out,
    /// The record is not listed.
    ListHidesUnreadable => unreadable_record_is_listed_and_hides_no_other,
    /// The list ends at the record.
    ListEndsAtUnreadable => unreadable_record_is_listed_and_hides_no_other,
    /// A page goes on behind a name alone.
    ListEndsAtNoName => what_is_no_name_hides_no_lease,

    // Cleaning up.
    /// Only what is asked for counts, and not the record's own ttls.
    CleanUpTakesYoung => records_in_use_outlive_a_clean_up,
    /// A clean-up counts from the begin of the term, whenever the record was used last.
    CleanUpCountsFromTheTerm => record_of_an_old_term_that_was_just_used_outlives_a_clean_up,
    /// What is held is old like any other.
    CleanUpTakesHeld => records_in_use_outlive_a_clean_up,
    /// Ten ttls are enough, whatever is asked for.
    CleanUpIgnoresAge => unused_records_are_removed_and_their_tokens_rise,
    /// What has expired is kept: it was never released.
    CleanUpKeepsExpired => unused_records_are_removed_and_their_tokens_rise,
    /// What cannot be understood is removed.
    CleanUpTakesUnreadable => records_that_must_be_kept_outlive_a_clean_up,
    /// A record ahead of the clock is removed, and the next token is less.
    CleanUpTakesAhead => records_that_must_be_kept_outlive_a_clean_up,
    /// A look removes.
    CleanUpLooksAndRemoves => looking_for_unused_records_removes_none,
    /// A look goes on past its prefix.
    CleanUpIgnoresPrefix => looking_for_unused_records_removes_none,
    /// A look ends where its page ends with what is no name.
    CleanUpEndsAtNoName => looking_for_unused_records_removes_none,
    /// Any page is taken.
    CleanUpTakesAnyPage => page_of_a_clean_up_outside_its_range_is_refused,

    // Watching.
    /// Renewals are told.
    WatchTellsRenewals => watch_is_silent_about_renewals,
    /// The watch begins when the first event is waited for.
    WatchStartsLate => watch_is_in_place_when_it_answers,
    /// Everything is told to everybody.
    WatchIgnoresScope => watch_of_one_lease_tells_of_no_other,
    /// Releases are not told.
    WatchMissesReleases => watch_tells_of_a_release,
    /// Wishes are not told.
    WatchMissesWishes => watch_tells_of_a_wish,
    /// Releases are not told to whoever waits for an end.
    WatchOfEndsMissesReleases => watch_of_ends_tells_of_a_wish_and_of_a_release,
    /// What was followed at once is not told to whoever waits for every end.
    WatchOfEveryEndMissesFollowed => watch_of_every_end_tells_of_one_that_was_followed_at_once,
    /// Removals are not told.
    WatchMissesRemovals => watch_tells_of_a_removed_record,
    /// A client's watch does not tell what went through the client.
    WatchMissesOwnChanges => watch_tells_of_changes_through_its_own_client,
    /// Two events change places.
    WatchTellsBackwards => watch_tells_terms_in_their_order,
    /// An event that is on its way when the wait is dropped is lost.
    WatchLosesDroppedEvent => dropping_the_wait_for_an_event_loses_none,

    // Dropped futures, and the whole.
    /// A dropped request leaves a lock behind.
    DropLeavesLock => dropped_acquire_is_resolved_by_asking_again,
    /// A dropped request takes the lease later, whatever has happened since.
    DropHaunts => dropped_acquire_never_haunts,
    /// The traits change with use.
    TraitsVary => traits_are_constant,
    /// An examination leaves its scratch record behind.
    ExaminationLeavesRecord => examination_leaves_nothing_behind,
}
