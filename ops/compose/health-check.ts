/** Calls the probe server of this container and exits with 0 or 1, because the image has no curl. */
const path = process.argv[2] ?? "/livez";
const port = process.env["METRICS_PORT"] ?? "9464";
const answer = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(2_500) }).catch(
  (error: unknown) => new Response(String(error), { status: 503 }),
);
console.log(answer.status, await answer.text());
process.exitCode = answer.ok ? 0 : 1;
