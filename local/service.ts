/** A running Postgres, Redis, Anvil or Solana, and the actions of the stack and of tests on it. */
export type Service = {
  readonly url: string;
  /** Returns undefined when it does not run, or has no process id on this machine (a container, a configured URL). */
  pid(): number | undefined;
  /** Shuts it down and keeps its data. */
  stop(): Promise<void>;
  /** Sends it a signal, waits until it has ended, and keeps its data. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Starts it again on the same port with the same data. */
  start(): Promise<void>;
  /** Shuts it down and removes its data. Safe to call twice. */
  close(): Promise<void>;
};

/** Shows the user the current step, for example "starting Postgres". */
export type Say = (line: string) => void;

/** Returns a service that runs already; it is used and never stopped. */
export function givenService(url: string, variable: string): Service {
  const refuse = async (): Promise<void> => {
    throw new Error(`the service that ${variable} names must not be stopped or started here`);
  };
  return { url, pid: () => undefined, stop: refuse, kill: refuse, start: refuse, close: async () => undefined };
}
