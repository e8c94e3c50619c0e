//! What watches are told of a term that begins.
use crate::common::{PATIENCE, Scratch, request, seconds, take};
use tenure_core::{Change, FencingToken, Interest, LeaseStore, Scope, Watch, WatchEvent};
use tokio::time::timeout;

pub async fn until_taken(watch: &mut Box<dyn Watch>) -> Option<FencingToken> {
    let taken = async {
        loop {
            if let WatchEvent::Changed {
                change: Change::Taken,
                token,
                ..
            } = watch.next().await.unwrap()
            {
                return token;
            }
        }
    };
    timeout(PATIENCE, taken).await.expect("the term is told of")
}

/// Its answer may have been lost, and with it whoever was to announce the term.
#[tokio::test]
async fn term_that_is_asked_for_again_is_announced_again() {
    let scratch = Scratch::new().await;
    let (first, second) = (scratch.store().await, scratch.store().await);
    let asked = request("job", "holder", seconds(300));
    let mut watch = second
        .watch(&Scope::Name(asked.name.clone()), Interest::Everything)
        .await
        .unwrap();
    let token = take(&first, &asked).await.token;
    assert_eq!(until_taken(&mut watch).await, Some(token));
    let again = take(&second, &asked).await;
    assert_eq!((again.token, again.again), (token, true));
    assert_eq!(until_taken(&mut watch).await, Some(token));
}
