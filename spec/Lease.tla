------------------------------- MODULE Lease -------------------------------
(* One lease of Tenure: the store's record, the processes that want it, and   *)
(* the requests between them. Safety needs the clocks here; what needs none   *)
(* is in Fence.tla. README.md says what is modelled and what is not.          *)
(*                                                                            *)
(* G1, G2, ... are the lines of GUARANTEES.md; files without a folder are in  *)
(* core/src/engine/.                                                          *)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
    Process,       \* incarnations: a restart is another process (G14)
    MaxAlive,      \* how many of them run at once
    TTL,           \* in ticks of the store's clock
    Less,          \* by how much less than TTL a grant may be: {0} where all are alike
    D,             \* a process's clock is within D ticks of the store's; 2D is
                   \* 2 * rate error * ttl + step allowance of core/src/timing
    MaxToken,      \* bound: how many terms are granted
    MaxAttempt,    \* bound: how many campaigns a process begins
    MaxForced,     \* bound: how many terms an operator ends by force
    Nobody,        \* holder where the store has no record
    Broken         \* "nothing", or the name of one planted bug

VARIABLES
    rec,           \* the store's record; times in it are what remains
    last,          \* the token granted last. It outlives the record, because the
                   \* next token is never below the store's clock (G4)
    forced,        \* tokens of the terms that an operator has ended
    net,           \* every request ever sent: each may be applied late, any number
                   \* of times, or never
    phase,         \* of each process: "new", "campaign", "term" or "gone"
    attempt,       \* the attempt of its campaign or term (G5)
    token,         \* the token of its term, else 0
    left,          \* what its own clock says is left of its term
    age,           \* of the request that it waits for, by its own clock; else -1
    answer,        \* to that request, on its way back
    offset         \* of its clock against the store's

vars == <<rec, last, forced, net, phase, attempt, token, left, age, answer, offset>>
store == <<rec, last, forced>>
mine == <<phase, attempt, token, left, age, answer, offset>>

-----------------------------------------------------------------------------
\* What a holder takes off (core/src/timing), for its clock may have been D ahead
\* when it sent and D behind when it looks.
Margin == IF Broken = "margin_of_D_for_2D" THEN D ELSE 2 * D
Trust  == TTL - Margin

\* Where grants vary, a renewal may end the lease sooner than its holder believes.
\* Nothing is promised of belief then until the holder has heard of it.
Varies == Less # {0}

ASSUME Trust > 0 /\ D >= 0 /\ 0 \in Less

-----------------------------------------------------------------------------
Lower(a, b)  == IF a < b THEN a ELSE b
Higher(a, b) == IF a > b THEN a ELSE b

NoAnswer  == [is |-> "nothing", token |-> 0, ttl |-> 0]
NoRecord  == [holder |-> Nobody, attempt |-> 0, token |-> 0, left |-> 0, released |-> FALSE,
              told |-> "yes"]
HasRecord == rec.holder # Nobody
Live      == HasRecord /\ ~rec.released /\ rec.left > 0

Alive(p)   == phase[p] \in {"campaign", "term"}
Waits(p)   == age[p] >= 0
\* The only question (Engine::authority in mod.rs). No reply, step or timer is
\* needed for it to become false (G3).
Believes(p) == phase[p] = "term" /\ left[p] > 0
\* An operator's forced release is the one exception to one believer at a time:
\* see "What is not promised" in GUARANTEES.md.
Undisturbed(p) ==
    /\ Believes(p) /\ token[p] \notin forced
    /\ Varies => rec.holder = p /\ rec.told = "yes"

\* Whether the holder has heard of the last grant matters only where grants vary:
\* "no", "maybe" while the answer is on its way, "yes".
Told(how) == IF Varies THEN how ELSE "yes"
\* The record when p takes in, or will never take in, the answer that waits for it.
Heard(p, how) ==
    IF rec.holder = p /\ rec.told = "maybe" THEN [rec EXCEPT !.told = how] ELSE rec

Message(kind, p, k) == [kind |-> kind, from |-> p, attempt |-> attempt[p], token |-> k]

-----------------------------------------------------------------------------
Init ==
    /\ rec     = NoRecord
    /\ last    = 0
    /\ forced  = {}
    /\ net     = {}
    /\ phase   = [p \in Process |-> "new"]
    /\ attempt = [p \in Process |-> 0]
    /\ token   = [p \in Process |-> 0]
    /\ left    = [p \in Process |-> 0]
    /\ age     = [p \in Process |-> -1]
    /\ answer  = [p \in Process |-> NoAnswer]
    /\ offset  = [p \in Process |-> 0]

-----------------------------------------------------------------------------
(* The processes. In which phase each action is possible stands in Next.       *)

Start(p) ==
    /\ Cardinality({q \in Process : Alive(q)}) < MaxAlive
    /\ phase'   = [phase EXCEPT ![p] = "campaign"]
    /\ attempt' = [attempt EXCEPT ![p] = 1]
    /\ UNCHANGED <<store, net, token, left, age, answer, offset>>

\* It crashes; what it has sent may still arrive.
Crash(p) ==
    /\ phase'   = [phase EXCEPT ![p] = "gone"]
    /\ attempt' = [attempt EXCEPT ![p] = 0]
    /\ token'   = [token EXCEPT ![p] = 0]
    /\ left'    = [left EXCEPT ![p] = 0]
    /\ age'     = [age EXCEPT ![p] = -1]
    /\ answer'  = [answer EXCEPT ![p] = NoAnswer]
    /\ offset'  = [offset EXCEPT ![p] = 0]
    /\ UNCHANGED <<store, net>>

\* A process that keeps its identity over a restart: not in the correct protocol.
Resurrect(p) ==
    /\ Broken = "restart_keeps_the_incarnation"
    /\ Cardinality({q \in Process : Alive(q)}) < MaxAlive
    /\ phase'   = [phase EXCEPT ![p] = "campaign"]
    /\ attempt' = [attempt EXCEPT ![p] = 1]
    /\ UNCHANGED <<store, net, token, left, age, answer, offset>>

Ask(p, kind) ==
    /\ ~Waits(p)
    /\ net'    = net \union {Message(kind, p, token[p])}
    /\ age'    = [age EXCEPT ![p] = 0]
    /\ UNCHANGED <<store, phase, attempt, token, left, answer, offset>>

\* heart.rs: attempt_due_campaigns. Every try of one campaign has its attempt.
AskToAcquire(p) == Ask(p, "acquire")
\* heart.rs: renew_due_terms.
AskToRenew(p)   == Believes(p) /\ Ask(p, "renew")

\* mod.rs: give_up_overdue_requests. A later answer to it is dropped, for it
\* carries the number of a request that nobody waits for.
GiveUp(p) ==
    /\ Waits(p)
    /\ age'    = [age EXCEPT ![p] = -1]
    /\ answer' = [answer EXCEPT ![p] =
                    IF Broken = "answers_without_a_number" THEN @ ELSE NoAnswer]
    /\ rec' = Heard(p, "no")
    /\ UNCHANGED <<last, forced, net, phase, attempt, token, left, offset>>

\* Where a new campaign begins (campaign.rs: begin_campaign), always with a new
\* attempt; at the bound the process is gone instead.
Campaign(p, a) ==
    IF a <= MaxAttempt
    THEN /\ phase'   = [phase EXCEPT ![p] = "campaign"]
         /\ attempt' = [attempt EXCEPT ![p] = a]
         /\ UNCHANGED offset
    ELSE /\ phase'   = [phase EXCEPT ![p] = "gone"]
         /\ attempt' = [attempt EXCEPT ![p] = 0]
         /\ offset'  = [offset EXCEPT ![p] = 0]

EndTerm(p, a) ==
    /\ Campaign(p, a)
    /\ token'  = [token EXCEPT ![p] = 0]
    /\ left'   = [left EXCEPT ![p] = 0]
    /\ age'    = [age EXCEPT ![p] = -1]
    /\ answer' = [answer EXCEPT ![p] = NoAnswer]

Answered(p) ==
    /\ Waits(p)
    /\ age'    = [age EXCEPT ![p] = -1]
    /\ answer' = [answer EXCEPT ![p] = NoAnswer]

\* How long a grant is good for: counted from before its request was sent (G2).
GoodFor(p) ==
    LET trust == answer[p].ttl - Margin
    IN  Higher(0, IF Broken = "deadline_from_the_reply" THEN trust ELSE trust - age[p])

\* campaign.rs: granted. A grant that came too late to be trusted is dropped; the
\* same attempt asked again gets the same term again.
TakeTerm(p) ==
    /\ answer[p].is = "granted"
    /\ Answered(p)
    /\ IF GoodFor(p) > 0
       THEN /\ phase' = [phase EXCEPT ![p] = "term"]
            /\ token' = [token EXCEPT ![p] = answer[p].token]
            /\ left'  = [left EXCEPT ![p] = GoodFor(p)]
       ELSE UNCHANGED <<phase, token, left>>
    /\ rec' = Heard(p, "yes")
    /\ UNCHANGED <<last, forced, net, attempt, offset>>

\* campaign.rs: held_by_another. It asks again later.
StandBy(p) ==
    /\ answer[p].is = "held"
    /\ Answered(p)
    /\ UNCHANGED <<store, net, phase, attempt, token, left, offset>>

\* campaign.rs: acquired. Only a new attempt can help.
TryAnew(p) ==
    /\ answer[p].is = "superseded"
    /\ IF Broken = "superseded_is_taken_for_granted"
       THEN /\ Answered(p)
            /\ phase' = [phase EXCEPT ![p] = "term"]
            /\ token' = [token EXCEPT ![p] = last]
            /\ left'  = [left EXCEPT ![p] = Trust]
            /\ UNCHANGED <<attempt, offset>>
       ELSE EndTerm(p, attempt[p] + 1)
    /\ UNCHANGED <<store, net>>

\* term.rs: extended. Belief is what was granted last, also where that is less, and
\* no reply counts after the deadline (G3).
TakeRenewal(p) ==
    /\ left[p] > 0 \/ Broken = "late_reply_revives"
    /\ answer[p].is = "extended"
    /\ Answered(p)
    /\ left' = [left EXCEPT ![p] =
                  IF Broken = "a_reply_may_only_extend" THEN Higher(@, GoodFor(p)) ELSE GoodFor(p)]
    /\ rec' = Heard(p, "yes")
    /\ UNCHANGED <<last, forced, net, phase, attempt, token, offset>>

\* term.rs: end. The term ends without a release: at its deadline, because the
\* renewal was answered "lost", because the watch showed another's term (hint.rs),
\* or because the work is stuck (heart.rs: stop_stuck_terms).
LoseTerm(p) ==
    /\ EndTerm(p, attempt[p] + 1)
    /\ UNCHANGED <<store, net>>

\* departure.rs: work_ended. Belief ends, then the release is sent (G10). Whether
\* it is ever confirmed changes nothing: the next campaign has a new attempt (G5).
Release(p) ==
    /\ net' = net \union {Message("release", p, token[p])}
    /\ CASE Broken = "release_before_the_work_ended" -> UNCHANGED mine
         [] Broken = "no_attempt_rotation" ->
                EndTerm(p, attempt[p]) /\ UNCHANGED offset
         [] OTHER -> EndTerm(p, attempt[p] + 1)
    /\ UNCHANGED store

-----------------------------------------------------------------------------
(* The store: core/src/store/mod.rs. Each request is one atomic step. *)

\* The answer goes back if the process still waits for this very request. Of two
\* answers to two copies the first one that arrives counts, be it either.
Answer(m, a) ==
    /\ Waits(m.from)
    /\ phase[m.from] = IF m.kind = "acquire" THEN "campaign" ELSE "term"
    /\ m.attempt = attempt[m.from] /\ m.token = token[m.from]
    /\ answer' = [answer EXCEPT ![m.from] = a]

\* The record becomes this, for as long as is granted.
GrantAs(m, is, record) ==
    \E less \in Less :
        \/ /\ Answer(m, [is |-> is, token |-> record.token, ttl |-> TTL - less])
           /\ rec' = [record EXCEPT !.left = TTL - less, !.told = Told("maybe")]
        \/ /\ rec' = [record EXCEPT !.left = TTL - less, !.told = Told("no")]
           /\ UNCHANGED answer

\* FencingToken::successor in core/src/words/token.rs.
Successor ==
    IF Broken = "clean_up_resets_the_token" THEN rec.token + 1
    ELSE Higher(rec.token, last) + 1

Grant(m) ==
    /\ Successor <= MaxToken
    /\ last' = Successor
    /\ GrantAs(m, "granted", [holder |-> m.from, attempt |-> m.attempt, token |-> Successor,
                              left |-> TTL, released |-> FALSE, told |-> "no"])

Refuse(m, why) ==
    /\ \/ Answer(m, [is |-> why, token |-> 0, ttl |-> 0]) /\ rec' = Heard(m.from, "no")
       \/ UNCHANGED <<rec, answer>>
    /\ UNCHANGED last

\* Whether the store counts the lease as live when it decides on a request of p.
LiveTo(p) ==
    IF Broken = "expiry_by_the_askers_clock"
    THEN HasRecord /\ ~rec.released /\ rec.left > offset[p]
    ELSE Live

\* LeaseStore::acquire, in the order of its documentation.
ApplyAcquire(m) ==
    LET own == rec.holder = m.from
        sameAttempt == rec.attempt = m.attempt \/ Broken = "attempts_not_compared"
        overtaken ==
            rec.attempt > m.attempt /\ Broken # "an_earlier_attempt_takes_what_is_free"
    IN  IF ~LiveTo(m.from)
        THEN IF own /\ (overtaken \/ (rec.released /\ sameAttempt))
             THEN Refuse(m, "superseded")
             ELSE Grant(m)
        ELSE IF own /\ sameAttempt
        THEN /\ IF Broken = "again_without_extension"
                THEN /\ UNCHANGED rec
                     /\ \/ Answer(m, [is |-> "granted", token |-> rec.token, ttl |-> TTL])
                        \/ UNCHANGED answer
                ELSE GrantAs(m, "granted", rec)
             /\ UNCHANGED last
        ELSE IF own /\ rec.attempt < m.attempt THEN Grant(m)
        ELSE Refuse(m, IF own THEN "superseded" ELSE "held")

SameTerm(m) == rec.holder = m.from /\ rec.token = m.token /\ rec.attempt = m.attempt

\* LeaseStore::renew: never revives (G9).
ApplyRenew(m) ==
    IF SameTerm(m) /\ (Live \/ Broken = "renewal_revives")
    THEN /\ GrantAs(m, "extended", [rec EXCEPT !.released = FALSE])
         /\ UNCHANGED last
    ELSE Refuse(m, "lost")

\* LeaseStore::release: only the very term (G8). Nobody waits for its answer here.
ApplyRelease(m) ==
    LET theTerm == IF Broken = "release_without_the_token" THEN rec.holder = m.from
                   ELSE SameTerm(m)
    IN  /\ theTerm
        /\ rec' = [rec EXCEPT !.released = TRUE, !.left = 0]
        /\ UNCHANGED <<last, answer>>

Apply(m) ==
    /\ CASE m.kind = "acquire" -> ApplyAcquire(m)
         [] m.kind = "renew"   -> ApplyRenew(m)
         [] m.kind = "release" -> ApplyRelease(m)
    /\ UNCHANGED <<forced, net, phase, attempt, token, left, age, offset>>

\* An operator ends a term: cli/src/commands/step_down.rs.
ForceRelease ==
    /\ Live
    /\ Cardinality(forced) < MaxForced
    /\ rec'    = [rec EXCEPT !.released = TRUE, !.left = 0]
    /\ forced' = forced \union {rec.token}
    /\ UNCHANGED <<last, net, mine>>

\* The record of an old name is removed; the token is not forgotten (G4).
CleanUp ==
    /\ HasRecord /\ ~Live
    /\ rec' = NoRecord
    /\ UNCHANGED <<last, forced, net, mine>>

-----------------------------------------------------------------------------
(* Time. One tick of the store's clock; every process's clock goes on by any   *)
(* amount, never backwards, that keeps it within D of the store's. That a      *)
(* process is paused, and for how long, is in the order of the actions.        *)

Tick ==
    \E now \in [Process -> -D..D] :
        LET passed == [p \in Process |-> 1 + now[p] - offset[p]]
        IN  /\ \A p \in Process : IF Alive(p) THEN passed[p] >= 0 ELSE now[p] = 0
            /\ offset' = now
            /\ rec'  = [rec EXCEPT !.left = Higher(0, @ - 1)]
            /\ left' = [p \in Process |->
                          IF Broken = "believes_until_told" THEN left[p]
                          ELSE Higher(0, left[p] - passed[p])]
            /\ age'  = [p \in Process |->
                          IF Waits(p) THEN Lower(Trust, age[p] + passed[p]) ELSE -1]
            /\ UNCHANGED <<last, forced, net, phase, attempt, token, answer>>

-----------------------------------------------------------------------------
In(phases) == {p \in Process : phase[p] \in phases}

Next ==
    \/ \E p \in In({"new"}) : Start(p)
    \/ \E p \in In({"campaign"}) :
        AskToAcquire(p) \/ TakeTerm(p) \/ StandBy(p) \/ TryAnew(p)
    \/ \E p \in In({"term"}) :
        AskToRenew(p) \/ TakeRenewal(p) \/ LoseTerm(p) \/ Release(p)
    \/ \E p \in In({"campaign", "term"}) : GiveUp(p) \/ Crash(p)
    \/ \E p \in In({"gone"}) : Resurrect(p)
    \/ \E m \in net : Apply(m)
    \/ ForceRelease
    \/ CleanUp
    \/ Tick

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* What holds in every state. I1 .. I10: README.md.                           *)

Messages ==
    [kind : {"acquire", "renew", "release"}, from : Process, attempt : 1..MaxAttempt, token : 0..MaxToken]

TypeOK ==
    /\ rec \in [holder : Process \union {Nobody}, attempt : 0..MaxAttempt,
                token : 0..MaxToken, left : 0..TTL, released : BOOLEAN,
                told : {"no", "maybe", "yes"}]
    /\ last \in 0..MaxToken
    /\ forced \subseteq 1..MaxToken
    /\ net \subseteq Messages
    /\ phase \in [Process -> {"new", "campaign", "term", "gone"}]
    /\ attempt \in [Process -> 0..MaxAttempt]
    /\ token \in [Process -> 0..MaxToken]
    /\ left \in [Process -> 0..Trust]
    /\ age \in [Process -> -1..Trust]
    /\ offset \in [Process -> -D..D]

\* G2 (I2): who believes has the lease, by the store's clock.
BeliefSound ==
    \A p \in Process : Undisturbed(p) =>
        /\ Live
        /\ rec.holder = p /\ rec.token = token[p] /\ rec.attempt = attempt[p]

\* G1 (I3): at most one believer.
OneBeliever ==
    \A p, q \in Process : Undisturbed(p) /\ Undisturbed(q) => p = q

\* G5, G10 (I9): once the release of a term was sent, nobody believes in that term.
ReleaseFinal ==
    \A m \in net : m.kind = "release" =>
        ~(Believes(m.from) /\ token[m.from] = m.token)

(* What holds in every step. *)

Granted == rec'.holder # Nobody /\ <<rec'.holder, rec'.attempt, rec'.token>>
                                 # <<rec.holder, rec.attempt, rec.token>>

\* G4 (I4): whoever gets the lease gets a greater token than everyone before.
TokensRise == [][Granted => last' > last /\ rec'.token = last']_vars

\* G4 (I5): a token stays with the holder and the attempt that it was given to.
OneTokenOneAttempt ==
    [][rec'.token = last /\ rec'.holder # Nobody =>
        rec'.holder = rec.holder /\ rec'.attempt = rec.attempt]_vars

\* G1 (I1): a live lease passes from one process to no other.
StoreExclusive == [][Live /\ Live' => rec'.holder = rec.holder]_vars

\* G8 (I8): a live term ends by expiry, its own release, an operator, or because
\* its holder gave it up for a later attempt.
NoChangeWithoutCause ==
    [][Live /\ (rec'.token # rec.token \/ rec'.released) =>
        \/ rec'.released /\ rec.token \in forced'
        \/ /\ rec'.released
           /\ [kind |-> "release", from |-> rec.holder,
               attempt |-> rec.attempt, token |-> rec.token] \in net
        \/ rec'.holder = rec.holder /\ rec'.attempt > rec.attempt]_vars

\* G5, G13: a process gets the lease by no attempt before its last one, and by that
\* one not again after its release.
NoAttemptComesBack ==
    [][Granted /\ rec'.holder = rec.holder =>
        \/ rec'.attempt > rec.attempt
        \/ rec'.attempt = rec.attempt /\ ~rec.released]_vars

\* G9 (I10): a term that is over in the store never lives again.
RenewalInert ==
    [][~Live /\ Live' => rec'.token # rec.token]_vars

\* G3: belief that has ended never comes back for the same term.
BeliefEndsOnce ==
    [][\A p \in Process : phase[p] = "term" /\ ~Believes(p) =>
        ~(Believes(p)' /\ token'[p] = token[p])]_vars

Symmetry == Permutations(Process)
=============================================================================
