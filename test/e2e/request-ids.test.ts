import { expect, test } from "vitest";
import { createPayment, listOptions, signOption } from "../../local/buyer-client.ts";
import { fundBuyers, startChain } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { waitFor } from "../support/wait-for.ts";

test("a request's id is in the log lines of the request and of the jobs that it caused, and in no others", async () => {
  const chain = await startChain();
  const fleet = await startFleet({ chain, workers: 1, envOf: { api: { LOG_LEVEL: "debug" } } });
  const [api, worker] = [fleet.apis[0], fleet.workers[0]];
  const buyers = await fundBuyers(chain, 4);
  const prepared = await Promise.all(
    buyers.map(async (buyer, index) => {
      const id = await createPayment(fleet.shop, { referenceId: `order-${index}`, cents: "100" });
      const [option] = await listOptions(fleet.shop, id, [`${chain.id}:${buyer.address}`]);
      if (!option) throw new Error("no option");
      return { id, body: { optionId: option.id, results: await signOption(fleet.shop, id, option, buyer) } };
    }),
  );
  // Concurrent requests share jobs and are verified in one batch. The line of a job names all of its requests.
  const answers = await Promise.all(
    prepared.map(({ id, body }, index) =>
      fetch(`${fleet.baseUrl}/v1/gateway/payment/${id}/confirm`, {
        method: "POST",
        headers: {
          "api-key": fleet.shop.caller.apiKey,
          "content-type": "application/json",
          "x-request-id": `confirm-${index}`,
        },
        body: JSON.stringify(body),
      }),
    ),
  );
  expect(answers.map((answer) => answer.headers.get("x-request-id"))).toEqual(
    prepared.map((_, index) => `confirm-${index}`),
  );
  const jobsOf = (requestId: string) =>
    worker
      ?.records()
      .filter((line) => [line["requestIds"] ?? line["requestId"]].flat().includes(requestId))
      .filter((line) => line["msg"] === "job ended") ?? [];
  for (const index of prepared.keys()) {
    await waitFor(() => jobsOf(`confirm-${index}`).length > 0, { within: 20_000 });
    expect(jobsOf(`confirm-${index}`)).toMatchObject([{ queue: "verify-signature", outcome: "done" }]);
    // The api writes the line after the response, and the test reads it when the process's output arrives.
    const answered = () =>
      api
        ?.records()
        .filter((line) => line["requestId"] === `confirm-${index}` && line["msg"] === "request completed") ?? [];
    await waitFor(() => answered().length > 0, { within: 20_000 });
    expect(answered()).toMatchObject([{ status: "200" }]);
  }
});
