import { expect, test } from "vitest";
import {
  askFinalOfEach,
  readAgreedHeight,
  readNewestAccounts,
  readSlotTime,
} from "../../../../chains/solana/cluster-state.ts";
import { answerEach, openCluster } from "./test-endpoints.ts";

/** An endpoint with these confirmed and final block heights. */
const heights = (confirmed: number, finalized: number) => ({
  answer: answerEach(({ params: [options] }) => {
    const height = (options as { commitment: string } | undefined)?.commitment === "finalized" ? finalized : confirmed;
    return { result: { absoluteSlot: height, blockHeight: height } };
  }),
});

test("the height that two endpoints have reached is a confirmed one, so that a final height may stand still", async () => {
  const { chain } = await openCluster(heights(500, 10), heights(502, 470), heights(300, 270));
  expect(await readAgreedHeight(chain)).toBe(500);
});

test("final states arrive as their endpoints answer, whatever another one takes", async () => {
  const hanging = { answer: (body: object) => ("method" in body && body.method === "getEpochInfo" ? undefined : {}) };
  const { chain } = await openCluster(heights(500, 470), hanging, heights(502, 471));
  const slots: number[] = [];
  const heard = new Promise<void>((resolve) => {
    const onAnswer = ({ slot }: { slot: number }) => {
      slots.push(slot);
      if (slots.length === 2) resolve();
    };
    void askFinalOfEach(chain, (_by, answer) => void answer.then(onAnswer, () => undefined));
  });
  await heard;
  expect(slots.toSorted()).toEqual([470, 471]);
});

const respond = (result: unknown) => ({ answer: answerEach(() => ({ result })) });

test.each([1e300, 1.5])(
  "the time of a slot is read from the next endpoint when the first one reports %s",
  async (odd) => {
    const { chain } = await openCluster(respond(odd), respond(1_700_000_000));
    expect(await readSlotTime(chain, 7)).toEqual(new Date("2023-11-14T22:13:20Z"));
  },
);

test.each([0.5, -1])("accounts are read from the next endpoint when the first one reports %s lamports", async (odd) => {
  const account = { owner: "o", data: ["", "base64"] };
  const accounts = (lamports: number) => respond({ context: { slot: 1 }, value: [{ ...account, lamports }] });
  const { chain } = await openCluster(accounts(odd), accounts(2 ** 60));
  expect([...(await readNewestAccounts(chain, ["a"])).values()]).toMatchObject([{ lamports: 2n ** 60n }]);
});
