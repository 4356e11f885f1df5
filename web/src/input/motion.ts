// Moves the view as long as keys are held: a short press makes one whole step, and a held key goes on smoothly, by frames of the screen.

/** The steps that a held key makes in a second. */
const STEPS_PER_SECOND = 7;
/** The longest time that one frame stands for, so that a page that was away does not jump. */
const MAX_FRAME_MS = 50;

/** One motion: `move` is called with the part of a step that a frame makes. */
interface Moving {
  move: (steps: number) => void;
  /** The part of the first step that is still to be made. */
  owed: number;
  held: boolean;
}

/** The motions of the keys that are held. */
export class Motion {
  private readonly moving = new Map<string, Moving>();
  private last_ms: number | null = null;

  constructor(
    /** Asks for a call at the next frame. */
    private readonly frame: (done: (now_ms: number) => void) => void = (done) => void requestAnimationFrame(done),
    /** Tells whether the reader wants no motion; then each press, also a repeated one, is a whole step at once. */
    private readonly still: () => boolean = () => matchMedia("(prefers-reduced-motion: reduce)").matches,
  ) {}

  /** Begins the motion of a key that is pressed; `repeated` is true for presses that the keyboard makes while the key is held. */
  press(key: string, repeated: boolean, move: (steps: number) => void): void {
    if (this.still()) return move(1);
    if (repeated && this.moving.has(key)) return;
    const owed = (this.moving.get(key)?.owed ?? 0) + 1;
    this.moving.set(key, { move, owed, held: true });
    if (this.last_ms !== null) return;
    this.last_ms = -1;
    this.frame((now_ms) => this.step(now_ms));
  }

  /** Ends the motion of a key that is released, after its first step. */
  release(key: string): void {
    const moving = this.moving.get(key);
    if (moving) moving.held = false;
  }

  /** Ends all motions, because the window does not hear of released keys any more. */
  stop(): void {
    for (const moving of this.moving.values()) moving.held = false;
  }

  private step(now_ms: number): void {
    // The first frame has no frame before it.
    const passed_ms = this.last_ms === null || this.last_ms < 0 ? 1000 / 60 : Math.min(now_ms - this.last_ms, MAX_FRAME_MS);
    this.last_ms = now_ms;
    for (const [key, moving] of this.moving) {
      const wanted = (passed_ms / 1000) * STEPS_PER_SECOND;
      const steps = moving.held ? wanted : Math.min(wanted, moving.owed);
      moving.owed = Math.max(0, moving.owed - steps);
      if (steps > 0) moving.move(steps);
      if (!moving.held && moving.owed <= 1e-9) this.moving.delete(key);
    }
    if (this.moving.size > 0) return this.frame((next_ms) => this.step(next_ms));
    this.last_ms = null;
  }
}
