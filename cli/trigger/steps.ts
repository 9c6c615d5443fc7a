import type { PaymentClient } from "../../client/index.ts";

/** What a scenario works with. */
export type Steps = {
  client: PaymentClient;
  merchantId: string;
  /** Tells the person what was made. */
  note: (line: string) => void;
};

/** Makes an event happen. Returns the id of the object that the event is about. */
export type Scenario = (steps: Steps) => Promise<string>;
