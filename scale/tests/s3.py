"""A server that speaks S3, for tests: says its port, and ends when its standard input does."""

import sys

import boto3
from moto.server import ThreadedMotoServer

# A name that is no address, so that nothing is asked what this machine is called.
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
_, port = server.get_host_and_port()
client = boto3.client(
    "s3",
    endpoint_url=f"http://127.0.0.1:{port}",
    aws_access_key_id="key",
    aws_secret_access_key="secret",
    region_name="us-east-1",
)
client.create_bucket(Bucket="bucket")
# What consoles make of an empty folder.
client.put_object(Bucket="bucket", Key="marked/set/")
print(port, flush=True)
sys.stdin.read()
server.stop()
