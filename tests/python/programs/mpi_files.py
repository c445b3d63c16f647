"""Uses the file ``data/file`` through MPI, as two ranks of a job do, in ways that the test expects."""

from array import array

from mpi4py import MPI

group = MPI.COMM_WORLD
rank = group.Get_rank()
numbers = array("i", range(1_000))
file = MPI.File.Open(group, "data/file", MPI.MODE_RDWR | MPI.MODE_CREATE)
file.Set_size(0)
file.Write_at_all(rank * 4_000, numbers)
file.Sync()
file.Read_at(4, array("i", [0] * 10))
# Half of it is behind the end.
file.Read_at(7_800, array("i", [0] * 100))
# Behind 16 bytes, in elements of 4.
file.Set_view(16, MPI.INT)
file.Read_at(2, array("i", [0] * 5))
file.Seek(10)
file.Read(array("i", [0] * 25))
file.Read_all(array("i", [0] * 25))
# What goes on meanwhile.
file.Iread_at(2, array("i", [0] * 5)).Wait()
file.Iread(array("i", [0] * 5)).Wait()
file.Iread_all(array("i", [0] * 5)).Wait()
file.Iwrite_at(70, numbers[70:75]).Wait()
# In two parts, of which the second says what was moved.
file.Read_at_all_begin(2, buffer := array("i", [0] * 5))
file.Read_at_all_end(buffer)
# From where the file stands: behind what was read above.
file.Read_all_begin(buffer)
file.Read_all_end(buffer)
file.Write_at_all_begin(90, numbers[90:95])
file.Write_at_all_end(numbers[90:95])
file.Write_all_begin(numbers[75:80])
file.Write_all_end(numbers[75:80])
# Where each rank's part is follows from the others'.
file.Read_ordered_begin(buffer)
file.Read_ordered_end(buffer)
file.Write_ordered_begin(numbers[:5])
file.Write_ordered_end(numbers[:5])
file.Close()
group.Barrier()
if rank == 0:
    try:
        MPI.File.Open(MPI.COMM_SELF, "data/none", MPI.MODE_RDONLY)
    except MPI.Exception:
        MPI.File.Delete("data/file")
