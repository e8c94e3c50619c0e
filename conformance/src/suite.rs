/// Expands to one test per case of the suite, each under the case's own name.
///
/// Takes an `async fn() -> Fixture` (or a closure that returns such a future). It is called once per case,
/// and again for one that is [made anew](fn@crate::run), on the case's own runtime. For two set-ups of one
/// store, call the macro in two modules. The example stands at the head of this crate.
#[macro_export]
macro_rules! suite {
    ($setup:expr) => {
        $crate::for_each_case! { ($crate::test_each_case) [$setup] }
    };
}

/// Makes the tests; see [`suite!`].
#[doc(hidden)]
#[macro_export]
macro_rules! test_each_case {
    ([$setup:expr] $($group:ident { $($name:ident)* })*) => {
        $($(
            #[test]
            fn $name() {
                // By its name: the case itself would be compiled anew in each program of tests.
                $crate::run($crate::case(stringify!($group), stringify!($name)), $setup);
            }
        )*)*
    };
}
