/** Preloaded by `node --import`: sets the process's clock ahead by TEST_CLOCK_AHEAD_MS milliseconds. */
const ahead = Number(process.env.TEST_CLOCK_AHEAD_MS);
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(RealDate.now() + ahead);
    else super(...args);
  }
  static now() {
    return RealDate.now() + ahead;
  }
};
