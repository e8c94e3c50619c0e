------------------------------- MODULE Fence -------------------------------
(* The data that terms write, and the fence before it: core/src/fence, and    *)
(* what each store makes of it. There is no clock, no lease and no belief     *)
(* here: any term that has begun may act at any moment, for ever. That is a   *)
(* frozen process, a late packet, a leader that nobody told. All that is      *)
(* taken from Lease.tla is OneTokenOneAttempt: a token has one term.          *)
(*                                                                            *)
(* G6 and G7 are lines of GUARANTEES.md.                                      *)
EXTENDS Integers

CONSTANTS
    MaxToken,   \* bound: how many terms there are; a term is known by its token
    Broken      \* "nothing", or the name of one planted bug

VARIABLES
    mark,       \* the highest token that has claimed the resource, durable with it
    open,       \* the terms with a transaction open that has passed the fence
    passed,     \* only where check and write are two steps: who has been checked
    begun,      \* the terms that have begun
    seen,       \* of each term: what it knows of the data: "nothing", "latest", or
                \* "outdated" since another term's write was accepted
    written,    \* the token of the write that was accepted last
    lost        \* whether an accepted write was overwritten by one that did not
                \* know of it

vars == <<mark, open, passed, begun, seen, written, lost>>

Term == 1..MaxToken

Init ==
    /\ mark    = 0
    /\ open    = {}
    /\ passed  = {}
    /\ begun   = {}
    /\ seen    = [k \in Term |-> "nothing"]
    /\ written = 0
    /\ lost    = FALSE

-----------------------------------------------------------------------------
Begin(k) ==
    /\ k \notin begun
    /\ begun' = begun \union {k}
    /\ UNCHANGED <<mark, open, passed, seen, written, lost>>

\* A new leader claims before it first reads. The claim locks the mark, so it
\* waits for the transactions that have passed the fence (G6).
Claim(k) ==
    /\ k \in begun
    /\ k > mark \/ Broken = "an_older_term_may_claim"
    /\ open = {}
    /\ mark' = k
    /\ UNCHANGED <<open, passed, begun, seen, written, lost>>

\* A leader reads only after its claim (G7), though it may be no leader any more.
Read(k) ==
    /\ k \in begun
    /\ mark >= k \/ Broken \in {"no_claim_before_the_read", "no_claim_is_demanded"}
    /\ seen' = [seen EXCEPT ![k] = "latest"]
    /\ UNCHANGED <<mark, open, passed, begun, written, lost>>

\* Who the fence lets in: the term that has claimed, and no other.
Admits(k) ==
    \/ mark = k
    \/ Broken = "no_claim_is_demanded" /\ k >= mark

\* A transaction passes the fence and holds its lock on the mark until it ends.
Enter(k) ==
    /\ k \in begun /\ k \notin open
    /\ Broken # "check_and_write_are_two_steps"
    /\ seen[k] # "nothing"
    /\ Admits(k)
    /\ open' = open \union {k}
    /\ UNCHANGED <<mark, passed, begun, seen, written, lost>>

\* Its write is accepted. Whoever knew the data before does no longer.
Accept(k) ==
    /\ written' = k
    /\ lost'    = (lost \/ seen[k] = "outdated")
    /\ seen'    = [j \in Term |->
                     IF j = k THEN "latest"
                     ELSE IF seen[j] = "latest" THEN "outdated" ELSE seen[j]]

Commit(k) ==
    /\ k \in open
    /\ open' = open \ {k}
    /\ Accept(k)
    /\ UNCHANGED <<mark, passed, begun>>

Abort(k) ==
    /\ k \in open
    /\ open' = open \ {k}
    /\ UNCHANGED <<mark, passed, begun, seen, written, lost>>

-----------------------------------------------------------------------------
(* Only in broken variants. *)

\* The check is a statement of its own, beside the write.
Check(k) ==
    /\ Broken = "check_and_write_are_two_steps"
    /\ k \in begun /\ seen[k] # "nothing"
    /\ Admits(k)
    /\ passed' = passed \union {k}
    /\ UNCHANGED <<mark, open, begun, seen, written, lost>>

Write(k) ==
    /\ k \in passed
    /\ passed' = passed \ {k}
    /\ Accept(k)
    /\ UNCHANGED <<mark, open, begun>>

\* The mark is kept apart from the data and does not survive a restart of it.
Forget ==
    /\ Broken = "the_mark_is_forgotten"
    /\ mark' = 0 /\ open' = {}
    /\ UNCHANGED <<passed, begun, seen, written, lost>>

-----------------------------------------------------------------------------
Next ==
    \/ \E k \in Term :
        \/ Begin(k) \/ Claim(k) \/ Read(k) \/ Enter(k) \/ Commit(k) \/ Abort(k)
        \/ Check(k) \/ Write(k)
    \/ Forget

\* For Takeover only: a transaction that has passed the fence ends, and a term that
\* may claim does.
Fairness == \A k \in Term : WF_vars(Commit(k) \/ Abort(k)) /\ SF_vars(Claim(k))

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
TypeOK ==
    /\ mark \in 0..MaxToken
    /\ open \subseteq Term /\ passed \subseteq Term /\ begun \subseteq Term
    /\ seen \in [Term -> {"nothing", "latest", "outdated"}]
    /\ written \in 0..MaxToken
    /\ lost \in BOOLEAN

\* G7 (I7).
NoLostUpdate == ~lost

\* G6: what is open is the claimant's.
OpenIsClaimed == \A k \in open : k = mark

\* G6 (I6): the mark never falls, and no accepted write has a lower token than one
\* before it.
FenceMonotone == [][mark' >= mark /\ written' >= written]_vars

\* G6: the greatest term that has begun gets the resource, however many older ones
\* go on.
Takeover == \A k \in Term : (k \in begun) ~> (mark >= k)
=============================================================================
