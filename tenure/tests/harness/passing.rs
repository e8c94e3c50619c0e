//! Stores over a real one, which they find in `self.inner`.

/// The methods of [`LeaseStore`](tenure::LeaseStore) that are named, passed on as they are.
macro_rules! pass_on {
    (@traits) => {
        fn traits(&self) -> ::tenure::core::StoreTraits {
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
        ) -> ::tenure::core::Answer<'a, Result<Option<::tenure::core::Lease>, ::tenure::StoreError>> {
            self.inner.get(name)
        }
    };
    (@watch) => {
        fn watch<'a>(
            &'a self,
            scope: &'a ::tenure::core::Scope,
        ) -> ::tenure::core::Answer<'a, Result<Box<dyn ::tenure::core::Watch>, ::tenure::StoreError>> {
            self.inner.watch(scope)
        }
    };
    (@examine) => {
        fn examine(
            &self,
        ) -> ::tenure::core::Answer<'_, Result<Vec<::tenure::core::Finding>, ::tenure::StoreError>> {
            self.inner.examine()
        }
    };
    (@run_beside) => {
        fn run_beside(&self, work: ::tenure::core::Work) -> Result<(), ::tenure::core::Work> {
            self.inner.run_beside(work)
        }
    };
    (@$method:ident [$request:ident] => Vec<$outcome:ident>) => {
        fn $method<'a>(
            &'a self,
            requests: &'a [::tenure::core::$request],
        ) -> ::tenure::core::Answer<'a, Vec<Result<::tenure::core::$outcome, ::tenure::StoreError>>> {
            self.inner.$method(requests)
        }
    };
    (@$method:ident $request:ident => Result<$outcome:ident>) => {
        fn $method<'a>(
            &'a self,
            request: &'a ::tenure::core::$request,
        ) -> ::tenure::core::Answer<'a, Result<::tenure::core::$outcome, ::tenure::StoreError>> {
            self.inner.$method(request)
        }
    };
    ($($method:ident),+) => { $($crate::harness::pass_on! { @$method })+ };
}
pub(crate) use pass_on;
