// Of things that are begun one after the other and end in any order, the last one counts.

export class LatestRequest {
  private begun = 0;

  /** Begins one, and gives what tells whether it is still the last. */
  begin(): () => boolean {
    const own = (this.begun += 1);
    return () => own === this.begun;
  }
}
