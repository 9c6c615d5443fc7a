/** A running Postgres, Redis, Anvil or Solana, and what a test or the stack may do to it. */
export type Service = {
  readonly url: string;
  /** Undefined when it does not run, or runs where it has no process id of this machine (a container, a given URL). */
  pid(): number | undefined;
  /** Ends it the polite way. What it stored stays. */
  stop(): Promise<void>;
  /** Ends it by a signal, without the manners, and waits until it is gone. What it stored stays. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Starts it again on the same port, on what it stored. */
  start(): Promise<void>;
  /** Ends it and removes what it stored. Safe to call twice. */
  close(): Promise<void>;
};

/** Tells a person what is going on: "starting Postgres". */
export type Say = (line: string) => void;

/** A service that somebody else runs: it is used, never stopped. */
export function givenService(url: string, variable: string): Service {
  const refuse = async (): Promise<void> => {
    throw new Error(`what ${variable} names is not ours to stop or start`);
  };
  return { url, pid: () => undefined, stop: refuse, kill: refuse, start: refuse, close: async () => undefined };
}
