//! Stores over a real one, which they find in `self.inner`.

/// The methods of [`LeaseStore`](tenure::LeaseStore) that are named, passed on as they are.
macro_rules! pass_on {
    (@traits) => {
        fn traits(&self) -> ::tenure::contract::StoreTraits {
            self.inner.traits()
        }
    };
    (@acquire) => { $crate::harness::pass_on! { @acquire Acquire => Result<Acquired> } };
    (@release) => { $crate::harness::pass_on! { @release [Release] => Vec<Released> } };
    (@renew) => { $crate::harness::pass_on! { @renew [Renew] => Vec<Renewed> } };
    (@ask) => { $crate::harness::pass_on! { @ask Ask => Result<Asked> } };
    (@list) => { $crate::harness::pass_on! { @list Page => Result<LeasePage> } };
    (@get) => {
        fn get<'a>(
            &'a self,
            name: &'a ::tenure::LeaseName,
        ) -> ::tenure::contract::Answer<'a, Result<Option<::tenure::contract::Lease>, ::tenure::StoreError>> {
            self.inner.get(name)
        }
    };
    (@watch) => {
        fn watch<'a>(
            &'a self,
            scope: &'a ::tenure::contract::Scope,
            interest: ::tenure::contract::Interest,
        ) -> ::tenure::contract::Answer<'a, Result<Box<dyn ::tenure::contract::Watch>, ::tenure::StoreError>> {
            self.inner.watch(scope, interest)
        }
    };
    (@examine) => {
        fn examine(
            &self,
        ) -> ::tenure::contract::Answer<'_, Result<Vec<::tenure::contract::Finding>, ::tenure::StoreError>> {
            self.inner.examine()
        }
    };
    (@run_beside) => {
        fn run_beside(&self, work: ::tenure::contract::Work) -> Result<(), ::tenure::contract::Work> {
            self.inner.run_beside(work)
        }
    };
    (@$method:ident [$request:ident] => Vec<$outcome:ident>) => {
        fn $method<'a>(
            &'a self,
            requests: &'a [::tenure::contract::$request],
        ) -> ::tenure::contract::Answer<'a, Vec<Result<::tenure::contract::$outcome, ::tenure::StoreError>>> {
            self.inner.$method(requests)
        }
    };
    (@$method:ident $request:ident => Result<$outcome:ident>) => {
        fn $method<'a>(
            &'a self,
            request: &'a ::tenure::contract::$request,
        ) -> ::tenure::contract::Answer<'a, Result<::tenure::contract::$outcome, ::tenure::StoreError>> {
            self.inner.$method(request)
        }
    };
    ($($method:ident),+) => { $($crate::harness::pass_on! { @$method })+ };
}
pub(crate) use pass_on;
