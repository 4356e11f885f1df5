// Tells which of several overlapping requests began last, so that only its answer is used.

/** Counts the requests of one kind. */
export class LatestRequest {
  private begun = 0;

  /** Begins a request and returns a function that tells whether it is still the latest. */
  begin(): () => boolean {
    const own = (this.begun += 1);
    return () => own === this.begun;
  }
}
